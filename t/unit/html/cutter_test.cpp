// Where slots are found, and that it does not matter in which parts the page comes.
#include "core/html/cutter.hpp"

#include <gtest/gtest.h>

#include "html_pages.hpp"

namespace ads::html {
namespace {

constexpr std::string_view kSpot = "<page-spot placement=\"a\">x</page-spot>";

std::string spot(std::string_view before, std::string_view behind = "") {
    return std::string(before) + std::string(kSpot) + std::string(behind);
}

// The slot in this page is found, or it is not.
void found(std::string_view before, std::string_view behind = "") {
    EXPECT_EQ(cut_page(spot(before, behind)).text,
              std::string(before) + "[a|x]" + std::string(behind));
}
void untouched(std::string_view page) {
    const CutPage cut = cut_page(page);
    EXPECT_TRUE(cut.slots.empty()) << page;
    EXPECT_EQ(cut.text, page);
}
void doubt(std::string_view page) {
    untouched(page);
    EXPECT_TRUE(cut_page(page).doubt) << page;
}

TEST(HtmlCutter, ASlotIsCutWithWhatItContains) {
    EXPECT_EQ(cut_page("a<page-spot placement=\"p\">f<b>x</b></page-spot>z").text,
              "a[p|f<b>x</b>]z");
    EXPECT_EQ(cut_page("<PAGE-SPOT placement=p></PAGE-spot\n>").text, "[p|]");
    EXPECT_EQ(cut_page("<page-spot class='>' placement = 'p' ></page-spot x=\">\">").text, "[p|]");
    EXPECT_EQ(cut_page("<page-spot/placement=p></page-spot><page-spot></page-spot>").text,
              "[p|][|]");
    EXPECT_EQ(cut_page("<ad-slot placement=p></ad-slot>").text, "<ad-slot placement=p></ad-slot>");
    EXPECT_EQ(cut_page({"<ad-slot placement=p></ad-slot>"}, "ad-slot").text, "[p|]");
}

TEST(HtmlCutter, OnlyElementsOfThatNameAreSlots) {
    untouched("<page-spots placement=a></page-spots>");
    untouched("<page-spo placement=a></page-spo>");
    untouched("< page-spot placement=a></page-spot>");
    untouched("</page-spot placement=a></page-spot>");
    untouched(std::string_view("<page-spot\0 placement=a></page-spot>", 36));
}

TEST(HtmlCutter, MarkupInTextIsNone) {
    untouched(spot("<!-- ", " -->"));
    untouched(spot("<!-- -- > ", " -->"));
    untouched(spot("<script>", "</script>"));
    untouched(spot("<SCRIPT type=x>", "</Script >"));
    untouched(spot("<style>", "</style>"));
    untouched(spot("<title>", "</title>"));
    untouched(spot("<textarea>", "</textarea>"));
    untouched(spot("<xmp>", "</xmp>"));
    untouched(spot("<iframe>", "</iframe>"));
    untouched(spot("<noembed>", "</noembed>"));
    untouched(spot("<noframes>", "</noframes>"));
    untouched(spot("<noscript>", "</noscript>"));
    untouched("<p title=\"<page-spot placement=a></page-spot>\">");
    untouched("<p title='<page-spot placement=a></page-spot>'>");
    untouched("<p title=<page-spot placement=a></page-spot>");
    untouched("<p <page-spot placement=a></page-spot>");
    untouched("<!doctype <page-spot></page-spot");
    untouched("<script>x</scripty>" + std::string(kSpot));
    untouched("<script><!--<script>" + std::string(kSpot) + "</script>" + std::string(kSpot));
}

TEST(HtmlCutter, BehindTextIsMarkup) {
    found("<!-- -->");
    found("<!-- --!>");
    found("<!-->");
    found("<!--->");
    found("<!-- <!-->");
    found("<!-- --- --->");
    found("<!- -> --", "-->");
    found("<!doctype html PUBLIC \"x>");
    found("<?php if (a > ");
    found("</ a=\">");
    found("<![CDATA[ > ", " ]]>");
    found("<script></script>");
    found("<script><!--<script></script>--></script>");
    found("<script><!-- </script>", " -->");
    found("<script><!--<script></scripts></script></script>");
    found("<script><!--<scripts></script>");
    found("<script><!--<script>--></script>");
    found("<title></titles></title/>");
    found("<textarea><!-- </textarea>", "-->");
    found("<style></style x=\">\">");
    found("<p title=>");
    found("<p b\"c>");
    found("<p href=x?a=\"b>");
    found("<p =\"x\">");
    found("<p b==\">");
    found("a < b > c");
    found("</>");
}

TEST(HtmlCutter, TemplatesAndSelectsKeepTheirSlots) {
    untouched(spot("<template>", "</template>"));
    untouched(spot("<template><template></template>", "</template>"));
    untouched(spot("<select><option>", "</select>"));
    found("<template></template>");
    found("</template>");
    found("<select><option>a</select>");
    found("<select><option>a<select>");
    found("<select><option>a<input>");
    found("<select><script></select></script></select>");
    found("<template><select></template>");
}

TEST(HtmlCutter, ForeignContentKeepsItsSlots) {
    untouched(spot("<svg>", "</svg>"));
    untouched(spot("<svg><foreignObject>", "</foreignObject></svg>"));
    untouched(spot("<math><mi>", "</mi></math>"));
    untouched(spot("<svg><![CDATA[ > ", "]]></svg>"));
    found("<svg><path d=\"M0 0\"/><g><title>t</title></g></svg>");
    found("<svg><path d=\"M0 0\"></svg>");
    found("<svg/>");
    found("<svg><![CDATA[</svg>]]></svg>");
    found("<svg><style><a></a></style><script>1</script></svg>");
    found("<svg><svg></svg></svg>");
    found("<svg><select></select><template></template></svg>");
    found("<svg><foreignObject><div><br><style></svg></style></div></foreignObject></svg>");
    found("<math><mi>x</mi><mo>&lt;</mo></math>");
}

TEST(HtmlCutter, LinksKeepTheirSlots) {
    untouched(spot("<a href=x>", "</a>"));
    untouched(spot("<A\nhref=x><b>", "</b></A>"));
    untouched(spot("<p><a name=top></p>"));
    untouched(spot("<a><template></a></template>"));
    untouched(spot("<a><svg><a></a></svg>"));
    untouched(spot("<a><table><tr><td><a>x</a></td></tr></table>", "</a>"));
    untouched(spot("<a><select></a></select>"));
    untouched(spot("<page-spot placement=b><a></page-spot>"));
    found("<a href=x>x</a>");
    found("<a name=top><a href=x>x</a >");
    found("<a><table><tr><td><a>x</a></td></tr></table></a>");
    found("<abbr>", "</abbr>");
    found("<template><a></template>");
    found("<svg><a></a></svg>");
    EXPECT_EQ(cut_page("<page-spot placement=b><a>x</a></page-spot>").slots.size(), 1u);
    EXPECT_EQ(
        cut_page({"<a", " x>", "<page-spot></page-spot><", "/a><page-spot></page-spot>"}).text,
        "<a x><page-spot></page-spot></a>[|]");
}

TEST(HtmlCutter, InDoubtNothingMoreIsFound) {
    doubt(spot("<plaintext>"));
    doubt(spot("<frameset>", "</frameset>"));
    doubt(spot("<select><style></style></select>"));
    doubt(spot("<select><textarea></textarea></select>"));
    doubt(spot("<select><svg></svg></select>"));
    doubt(spot("<select><template></template></select>"));
    doubt(spot("<svg><p></p></svg>"));
    doubt(spot("<svg></div></svg>"));
    doubt(spot("<svg><desc><b></desc></svg>"));
    doubt(spot("<math><annotation-xml encoding=text/html></annotation-xml></math>"));
    std::string deep = "<svg>";
    for (int i = 0; i < 100; i++) {
        deep += "<g>";
    }
    doubt(spot(deep));
}

TEST(HtmlCutter, ASlotIsWhole) {
    untouched("<page-spot placement=a>");
    untouched("<page-spot placement=a/>x");
    untouched("<div><page-spot placement=a></div>x</page-spot>");
    untouched("<page-spot placement=a><p>x</page-spot>");
    untouched("<page-spot placement=a><page-spot placement=b></page-spot></page-spot>");
    untouched("<page-spot placement=a></template></page-spot>");
    EXPECT_EQ(cut_page("<page-spot placement=a></div><page-spot placement=b></page-spot>").text,
              "<page-spot placement=a></div>[b|]");
    EXPECT_EQ(
        cut_page(
            "<page-spot placement=a><svg><path></svg><img src=x><script></b></script></page-spot>")
            .slots.size(),
        1u);
}

TEST(HtmlCutter, ASlotHasABound) {
    const std::string start = "<page-spot placement=a>";
    const std::string end = "</page-spot>";
    const size_t room = kMostHeld - start.size() - end.size();
    const std::string fits = start + std::string(room, 'x') + end;
    const std::string too_long = start + std::string(room + 1, 'x') + end;
    EXPECT_EQ(cut_page(fits).slots.size(), 1u);
    untouched(too_long);
    // What begins in one that is too long is found.
    const std::string next = start + std::string(kMostHeld, 'x') + std::string(kSpot);
    EXPECT_EQ(cut_page(next).slots.size(), 1u);
    for (const std::string& page : {fits, too_long, next}) {
        for (const size_t size : {1, 7, 1000}) {
            std::vector<std::string_view> parts;
            for (size_t at = 0; at < page.size(); at += size) {
                parts.push_back(std::string_view(page).substr(at, size));
            }
            const CutPage cut = cut_page(parts);
            EXPECT_EQ(cut.text, cut_page(page).text);
            EXPECT_LE(cut.most_kept, kMostHeld);
        }
    }
}

TEST(HtmlCutter, APageDeclaresItsSlots) {
    EXPECT_EQ(cut_page("<meta name=\"page-spots\" content=\"a,b&#44;c&#x2d;d\">").lists,
              std::vector<std::string>{"a,b,c-d"});
    EXPECT_EQ(cut_page("<META content='a' NAME=Page-Spots />").lists,
              std::vector<std::string>{"a"});
    EXPECT_TRUE(cut_page("<meta name=page-spot content=a>").lists.empty());
    EXPECT_TRUE(cut_page("<template><meta name=page-spots content=a></template>").lists.empty());
    EXPECT_TRUE(cut_page("<!--<meta name=page-spots content=a>-->").lists.empty());
}

void expect_same(std::string_view page, const CutPage& whole,
                 const std::vector<std::string_view>& parts) {
    const CutPage cut = cut_page(parts);
    ASSERT_EQ(cut.text, whole.text) << page;
    ASSERT_EQ(cut.slots, whole.slots) << page;
    ASSERT_EQ(cut.lists, whole.lists) << page;
    ASSERT_EQ(cut.doubt, whole.doubt) << page;
}

TEST(HtmlCutter, HowAPageIsCutInPartsDoesNotMatter) {
    std::mt19937_64 random(1);
    size_t slots = 0;
    const int pages = std::getenv("ADS_TEST_LONG") != nullptr ? 20000 : 1000;
    for (int i = 0; i < pages; i++) {
        const std::string page = random_page(random, 3 + random() % 20);
        const std::string_view view = page;
        const CutPage whole = cut_page(view);
        slots += whole.slots.size();
        std::vector<std::string_view> bytes;
        for (size_t at = 0; at < page.size(); at++) {
            bytes.push_back(view.substr(at, 1));
            ASSERT_NO_FATAL_FAILURE(
                expect_same(view, whole, {view.substr(0, at), view.substr(at)}));
        }
        ASSERT_NO_FATAL_FAILURE(expect_same(view, whole, bytes));
    }
    EXPECT_GT(slots, static_cast<size_t>(pages) / 2);
}

}  // namespace
}  // namespace ads::html
