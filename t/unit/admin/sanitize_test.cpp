#include "creative/sanitize.hpp"

#include <gtest/gtest.h>
#include <jansson.h>

#include <cstdlib>
#include <random>

#include "creative/limits.hpp"
#include "creative/link.hpp"
#include "creative/preview.hpp"
#include "creative/style.hpp"
#include "creative_grammar.hpp"

namespace ads::creative {
namespace {

std::vector<std::string> hostile() {
    json_error_t error;
    json_t* list = json_load_file("t/vectors/hostile.json", JSON_ALLOW_NUL, &error);
    EXPECT_NE(list, nullptr) << error.text;
    std::vector<std::string> out;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t* item = json_array_get(list, i);
        out.emplace_back(json_string_value(item), json_string_length(item));
    }
    json_decref(list);
    return out;
}

std::string clean(std::string_view markup) {
    const Sanitized result = sanitize(markup);
    EXPECT_TRUE(result.ok()) << markup << ": " << result.refusal;
    return result.html;
}

// Whatever goes in: what comes out is within the grammar, and stays as it is.
void expect_sound(std::string_view markup) {
    const Sanitized result = sanitize(markup);
    if (!result.ok()) {
        EXPECT_TRUE(result.refusal.starts_with("must ")) << result.refusal;
        EXPECT_TRUE(result.html.empty());
        return;
    }
    grammar::Reader reader(result.html);
    EXPECT_TRUE(reader.clean()) << markup << "\n" << result.html << "\n" << reader.why;
    const Sanitized again = sanitize(result.html);
    EXPECT_EQ(again.html, result.html) << markup;
    EXPECT_TRUE(again.removed.empty()) << markup << "\n" << again.removed.front();
}

std::string repeated(std::string_view what, size_t times) {
    std::string out;
    while (times-- > 0) {
        out += what;
    }
    return out;
}

constexpr std::string_view kLinkEnd =
    "target=\"_blank\" rel=\"noopener noreferrer nofollow sponsored\">";

// ---- what stays ----

TEST(Sanitize, KeepsWhatIsBenign) {
    const char* same[] = {
        "",
        "plain text",
        "<p>Autumn <strong>sale</strong></p>",
        "<h1>a</h1><h2>b</h2><h3>c</h3><h4>d</h4><h5>e</h5><h6>f</h6>",
        "<ul><li>one</li><li>two <em>more</em></li></ul><ol><li>x</li></ol>",
        "<div class=\"a b-c_D9\"><span>x</span><br>y<hr></div>",
        "<b>b</b><i>i</i><u>u</u><s>s</s><small>x</small>H<sub>2</sub>O<sup>3</sup>",
        "<blockquote>said</blockquote>",
        "<img src=\"https://cdn.example.com/a.png?x=1&amp;y=2\" alt=\"5 &gt; 3 &quot;ok&quot;\" "
        "width=\"728\" height=\"90\">",
        "<img src=\"/a.png\" width=\"100%\">",
        "<p style=\"color: #f00; margin: 0 auto; font-family: 'Open Sans', sans-serif\">x</p>",
        "<p style=\"color:rgb(1, 2, 3);background-color:hsl(120,50%,50%)!important\">x</p>",
        "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0 \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d",
        "1 &lt; 2 &amp;&amp; 3 &gt; 2 &quot;x&quot; 'y'",
        " leading and trailing\n\n",
    };
    for (const char* markup : same) {
        const Sanitized result = sanitize(markup);
        EXPECT_EQ(result.html, markup);
        EXPECT_TRUE(result.ok() && result.removed.empty()) << markup;
        expect_sound(markup);
    }
}

TEST(Sanitize, KeepsTheMeaning) {
    EXPECT_EQ(clean("a&nbsp;b &eacute; &#128512; &copy"),
              "a\xc2\xa0"
              "b \xc3\xa9 \xf0\x9f\x98\x80 \xc2\xa9");
    EXPECT_EQ(clean("<P>x<BR/>y"), "<p>x<br>y</p>");
    EXPECT_EQ(clean("<li>a<li>b"), "<li>a</li><li>b</li>");
    EXPECT_EQ(clean("<a href=HTTPS://A.example/Path>x</a>"),
              "<a href=\"https://A.example/Path\" " + std::string(kLinkEnd) + "x</a>");
    EXPECT_EQ(clean("<a href='/x?a&b' class=c>x</a>"),
              "<a href=\"/x?a&amp;b\" class=\"c\" " + std::string(kLinkEnd) + "x</a>");
    EXPECT_EQ(clean("<table><tr><td>x</table>"),
              "<table><tbody><tr><td>x</td></tr></tbody></table>");
    EXPECT_EQ(clean("<center>x</center>"), "x");
    EXPECT_EQ(clean("<html><head><title>t</title></head><body><p>x</p></body></html>"), "<p>x</p>");
    EXPECT_EQ(clean("<xyz><b>x</b></xyz>"), "<b>x</b>");
    EXPECT_EQ(clean("<p class=' a\tb  <c> d'>x</p>"), "<p class=\"a b d\">x</p>");
    EXPECT_EQ(clean("a\r\nb\rc"), "a\nb\nc");
    EXPECT_EQ(clean("<p><div>x</div></p>"), "<p></p><div>x</div><p></p>");
}

// What ads are made of, beside text and pictures.
TEST(Sanitize, KeepsOrdinaryAds) {
    const char* same[] = {
        "<table cellpadding=\"0\" width=\"300\"><tbody><tr><td align=\"center\" "
        "bgcolor=\"#fff\" colspan=\"2\" valign=\"top\">x</td></tr></tbody></table>",
        "<p style=\"font: bold 14px/1.2 Arial, sans-serif\">x</p>",
        "<p style=\"background: linear-gradient(to right, #fff 0%, rgb(1, 2, 3) 100%)\">x</p>",
        "<p style=\"background-image: radial-gradient(circle at 50% 50%, red, blue)\">x</p>",
        "<p style=\"background-image: linear-gradient(-45deg, red, blue)\">x</p>",
        "<p style=\"background-image: url('https://a.example/b.png?x=1&amp;y=2')\">x</p>",
        "<p style=\"background: url('/b.png') no-repeat center / cover, red\">x</p>",
        "<p style=\"background-size: cover; background-position: 50% 0; background-repeat: "
        "no-repeat\">x</p>",
        "<style>.ad,p.big .c_1{color: red; font: 14px/1.2 Arial}td{padding: 0}</style><p>x</p>",
        "<style>.a{background: url('https://a.example/b.png?x=1&y=2')}</style>",
    };
    for (const char* markup : same) {
        const Sanitized result = sanitize(markup);
        EXPECT_EQ(result.html, markup);
        EXPECT_TRUE(result.ok() && result.removed.empty())
            << markup << (result.removed.empty() ? "" : result.removed[0]);
        expect_sound(markup);
    }
    EXPECT_EQ(clean("<a href={click_url}>x</a>"),
              "<a href=\"{click_url}\" " + std::string(kLinkEnd) + "x</a>");
    EXPECT_EQ(clean("<img src={click_url}>"), "<img>");
    EXPECT_EQ(clean("<a href='{click_url}x'>y</a>"), "<a " + std::string(kLinkEnd) + "y</a>");
    EXPECT_EQ(
        clean("<html><head><style type=text/css>\n/* } */ .A { COLOR : red } </style></head>"),
        "<style>.A{color: red}</style>");
}

TEST(Sanitize, StyleSheetsAreRulesOfPlainSelectors) {
    const auto sheet = [](std::string_view css) {
        const std::string markup = "<style>" + std::string(css) + "</style>";
        expect_sound(markup);
        return clean(markup);
    };
    for (const char* none : {"",
                             "@import 'x';",
                             "@media print{.a{color:red}}",
                             "@font-face{src:url(x)}",
                             ".a:hover{color:red}",
                             "#a{color:red}",
                             "*{color:red}",
                             "body{color:red}",
                             ".a{position:fixed}",
                             ".a[href^='x']{color:red}",
                             ".a>.b{color:red}",
                             ".a{color:red",
                             ".a{color:expression(1)}",
                             "@charset \"x",
                             "}.a{color:red}",
                             ".a{b{color:red}}",
                             "{",
                             "script{color:red}",
                             ".\\61{color:red}",
                             ".a{background:url(javascript:x)}",
                             ".1{color:red}",
                             "<!--.a{color:red}-->",
                             "/*"}) {
        EXPECT_EQ(sheet(none), "") << none;
    }
    EXPECT_EQ(sheet("@media x{.a{color:red}}.b{color:red}"), "<style>.b{color:red}</style>");
    EXPECT_EQ(sheet("@import 'a;b';P . a,P{color:red;left:1px}"), "<style>p{color: red}</style>");
    EXPECT_EQ(sheet(".a{color:'}';width:1px}"), "<style>.a{width: 1px}</style>");
    EXPECT_EQ(clean("<style media=print>.a{color:red}</style>"), "");
    EXPECT_EQ(clean("<style>.a{color:red}</style><script>"), "<style>.a{color:red}</style>");
}

TEST(Sanitize, SaysWhatItRemoved) {
    const auto removed = [](std::string_view markup) { return sanitize(markup).removed; };
    using List = std::vector<std::string>;
    EXPECT_EQ(removed("<img onclick=x>"), List{"onclick on <img>"});
    EXPECT_EQ(removed("<script>x</script>"), List{"<script> with its content"});
    EXPECT_EQ(removed("<p style='position:fixed;color:red'>"), List{"style declaration position"});
    EXPECT_EQ(removed("<b onclick=1></b><b onclick=2></b>"), List{"onclick on <b> (2 times)"});
    EXPECT_EQ(removed("<xyz>x</xyz>"), List{"<xyz>"});
    EXPECT_EQ(removed("<!-- x -->"), List{"a comment"});
    EXPECT_EQ(removed("<svg><b>x</svg>"), (List{"<svg> with its content"}));
    EXPECT_EQ(removed("<a href=javascript:x>y</a>"),
              List{"href on <a>, which must start with https:// or with one /"});
    EXPECT_LE(removed(repeated("<b a", 1) + ">").size(), 1u);
    std::string many;
    for (int i = 0; i < 300; i++) {
        many += "<x" + std::to_string(i) + "></x" + std::to_string(i) + ">";
    }
    EXPECT_EQ(removed(many).size(), 101u);
    EXPECT_EQ(removed(many).back(), "and 200 more");
    for (const auto& what : removed("<b \xc2\x9b\x1b[31m=1 " + std::string(100, 'x') + "=1>")) {
        EXPECT_LT(what.size(), 60u);
        EXPECT_EQ(what.find('\x1b'), what.npos);
    }
}

// ---- what goes ----

TEST(Sanitize, HostileVectors) {
    const auto vectors = hostile();
    EXPECT_GT(vectors.size(), 900u);
    size_t harmless = 0;
    for (const auto& markup : vectors) {
        expect_sound(markup);
        harmless += grammar::Reader(markup).clean() ? 1 : 0;
    }
    EXPECT_LT(harmless, vectors.size() / 20) << "the grammar must have found them unclean";
}

TEST(Sanitize, HostileVectorsInOtherPlaces) {
    const char* around[][2] = {{"<p>", "</p>"},
                               {"<table><tr><td>", "</td></tr></table>"},
                               {"<table>", ""},
                               {"<select>", "</select>"},
                               {"<svg>", "</svg>"},
                               {"<math><mtext>", ""},
                               {"<b><i><a href=/x>", "</b>"},
                               {"<template>", "</template><p>"},
                               {"<noscript>", "</noscript>"},
                               {"<!--", "-->"},
                               {"<p title=\"", "\">"},
                               {"<textarea>", "</textarea>"}};
    const auto vectors = hostile();
    for (const auto& [before, after] : around) {
        for (const auto& markup : vectors) {
            expect_sound(before + markup + after);
        }
    }
}

TEST(Sanitize, RandomMixtures) {
    const auto vectors = hostile();
    std::mt19937_64 random(7);
    const int rounds = std::getenv("ADS_TEST_LONG") != nullptr ? 50'000 : 2'000;
    for (int i = 0; i < rounds; i++) {
        std::string markup;
        for (uint64_t n = 1 + random() % 5; n > 0; n--) {
            const std::string& vector = vectors[random() % vectors.size()];
            const size_t from = random() % 3 == 0 ? random() % (vector.size() + 1) : 0;
            markup += vector.substr(from, random() % 3 == 0 ? random() % 40 : std::string::npos);
        }
        expect_sound(markup);
    }
}

TEST(Sanitize, DroppedWithContent) {
    for (const char* tag :
         {"script", "style", "svg", "math", "template", "noscript", "iframe", "object", "select",
          "textarea", "title", "xmp", "noembed", "button", "noframes"}) {
        const std::string name = tag;
        EXPECT_EQ(clean("a<" + name + "><p>gone</p></" + name + ">b"), "ab") << tag;
    }
    EXPECT_EQ(clean("a<plaintext><b>gone</b>"), "a");
    EXPECT_EQ(clean("a<base href=x><meta x><link x><embed x><input x>b"), "ab");
}

// ---- limits ----

TEST(Sanitize, Limits) {
    const auto refusal = [](const std::string& markup) { return sanitize(markup).refusal; };
    EXPECT_EQ(refusal(std::string(kMaxBytes, 'x')), "");
    EXPECT_EQ(refusal(std::string(kMaxBytes + 1, 'x')), "must be at most 65536 bytes, not 65537");
    EXPECT_EQ(refusal("\xff"), "must be UTF-8");
    EXPECT_EQ(refusal("\xc0\xbcscript>"), "must be UTF-8");
    EXPECT_EQ(refusal(repeated("<br>", 2000)), "");
    EXPECT_TRUE(refusal(repeated("<br>", 2001)).starts_with("must have at most 2000 tags"));
    EXPECT_TRUE(refusal(repeated("<!---->", 2001)).starts_with("must have at most 2000 tags"));
    EXPECT_EQ(refusal(repeated("<div>", 256)), "");
    EXPECT_EQ(refusal(repeated("<div>", 257)), "must be nested at most 256 deep");
    EXPECT_EQ(refusal(repeated("<div>", 1999)), "must be nested at most 256 deep");
    EXPECT_EQ(refusal(repeated("<div><!--</div>-->", 300)), "must be nested at most 256 deep");
    EXPECT_EQ(refusal(repeated("a < b ", 5000)), "");
    const auto tag = [](int attributes, const char* format) {
        std::string out = "<p";
        char text[32];
        for (int i = 0; i < attributes; i++) {
            std::snprintf(text, sizeof text, format, i);
            out += text;
        }
        return out + ">x";
    };
    for (const char* format : {" a%d", " a%d=1", " a%d = '>'", "/a%d=\">\"", "\na%d\t=\fb"}) {
        EXPECT_EQ(refusal(tag(64, format)), "") << format;
        EXPECT_EQ(refusal(tag(65, format)), "must have at most 64 attributes on a tag") << format;
        EXPECT_EQ(refusal("<textarea><p a=\"</textarea>" + tag(65, format)),
                  "must have at most 64 attributes on a tag");
    }
    std::string reopened = "<p>";
    for (int i = 0; i < 250; i++) {
        reopened += "<b x=" + std::to_string(i) + ">";
    }
    EXPECT_TRUE(
        refusal(reopened + "</p>" + repeated("<p>x</p>", 850)).starts_with("must close its tags"));
    EXPECT_EQ(clean("<p>x</p>"), "<p>x</p>") << "the parser is well after that";
    std::string compared;
    for (int i = 0; i < 240; i++) {
        compared += tag(62, " a%d").replace(1, 1, "b z=" + std::to_string(i));
    }
    EXPECT_TRUE(refusal(compared).starts_with("must have fewer attributes"));
    EXPECT_EQ(refusal(repeated("<a href=/x class=b style=color:red title=x>x</a>", 400)), "");
    EXPECT_EQ(refusal(repeated("<b class=b style=color:red>x</b>", 900)), "");
}

// ---- parts ----

TEST(CreativeLink, AllowsHttpsAndOwnPaths) {
    for (const char* url :
         {"https://a.example", "https://a.example/", "HTTPS://A.EXAMPLE/x?y=1&z#f",
          "https://a.example:8443/x", "https://1.2.3.4/", "https://[2606:4700::1111]/x",
          "https://[::1]:443/", "https://xn--bcher-kva.example/", "https://a_b.example/", "/", "/x",
          "/x//y", "/?x", "/#x", "https://a.example/%20%0a", "https://a.example/\xc3\xa9",
          "https://a.example?x@y", "https://a.example/@x", "/x:y"}) {
        EXPECT_EQ(link_fault(url), "") << url;
    }
    EXPECT_EQ(link_fault("https://a.example/" + std::string(2030, 'x')), "");
    EXPECT_NE(link_fault("https://a.example/" + std::string(2031, 'x')), "");
}

TEST(CreativeStyle, Declarations) {
    const auto style = [](std::string_view text) { return clean_style(text).text; };
    EXPECT_EQ(style("color:red"), "color:red");
    EXPECT_EQ(style(" color : red ; "), "color : red ;");
    EXPECT_EQ(style("COLOR:Red"), "color: Red");
    EXPECT_EQ(style("color:red;position:fixed;width:10px"), "color: red; width: 10px");
    EXPECT_EQ(style("background:#fff"), "background-color: #fff");
    EXPECT_EQ(style("background:rgba(0, 0, 0, .5)"), "background-color: rgb(0, 0, 0, .5)");
    EXPECT_EQ(style("background:red url(x)"), "");
    EXPECT_EQ(style("background:red blue"), "");
    EXPECT_EQ(style("font:14px/1.2 Arial"), "font:14px/1.2 Arial");
    EXPECT_EQ(style("font:14px//1.2 Arial"), "");
    EXPECT_EQ(style("font:14px/1/2 Arial"), "");
    EXPECT_EQ(style("margin:1px/2px"), "");
    EXPECT_EQ(style("BACKGROUND:URL( \"https://a.example/b\" )"),
              "background: url('https://a.example/b')");
    for (const char* bad :
         {"background:url(http://a.example/)", "background:url(//a.example/)",
          "background:url(data:image/png,x)", "background:url()",
          "background:url('https://a.example/)", "background:url(https://a.example/b c)",
          "background:url(https://a.example/')", "background:xurl(https://a.example/)",
          "color:url(https://a.example/)", "list-style-type:url(https://a.example/)",
          "background:image-set(url(https://a.example/))", "background:conic-gradient(red,blue)",
          "background:x-linear-gradient(red,blue)",
          "background:linear-gradient(url(https://a.example/),red)",
          "background:linear-gradient(red,blue", "background:linear-gradient(calc(1px),red)",
          "color:linear-gradient(red,blue)", "background:linear-gradient(linear-gradient(red))"}) {
        EXPECT_EQ(style(bad), "") << bad;
    }
    EXPECT_EQ(style("font-family:\"Open Sans\",serif"), "font-family: 'Open Sans',serif");
    EXPECT_EQ(style("color:hsla(1,2%,3%,.4)"), "color: hsl(1,2%,3%,.4)");
    EXPECT_EQ(style("color:\n\tred\n"), "color: red");
    EXPECT_EQ(style("display:inline-block;font-family:-apple-system"),
              "display:inline-block;font-family:-apple-system");
    EXPECT_EQ(style("width:10px!important"), "width:10px!important");
    EXPECT_EQ(style("margin:0-9px"), "");
    EXPECT_EQ(style("margin:0 -9px"), "");
    EXPECT_EQ(clean_style("x:y;--z:1;color:red").removed, (std::vector<std::string>{"x", "--z"}));
}

TEST(CreativePreview, IsSandboxed) {
    Sanitized creative = sanitize("<p>\"Hi\" &amp; <b onclick=x>x</b></p>");
    const std::string page = preview_page(creative, "a<b>.html", {728, 90});
    EXPECT_NE(page.find("sandbox=\"allow-popups allow-popups-to-escape-sandbox\""), page.npos);
    EXPECT_NE(page.find("content=\"default-src 'none'; img-src https:;"), page.npos);
    EXPECT_NE(
        page.find(
            "&lt;p&gt;&amp;quot;Hi&amp;quot; &amp;amp; &lt;b&gt;x&lt;/b&gt;&lt;/p&gt;\"></iframe>"),
        page.npos)
        << page;
    EXPECT_NE(page.find("<title>Preview of a&lt;b&gt;.html</title>"), page.npos);
    EXPECT_NE(page.find("<li>onclick on &lt;b&gt;</li>"), page.npos);
    EXPECT_EQ(page.find("<script"), page.npos);
    EXPECT_EQ(page.find("allow-scripts"), page.npos);
}

}  // namespace
}  // namespace ads::creative
