#include "creative/preview.hpp"

#include "creative/escape.hpp"

namespace ads::creative {

namespace {

// The same walls as around a creative that is served, here around the page too.
constexpr std::string_view kPolicy =
    "default-src 'none'; img-src https:; style-src 'unsafe-inline'; form-action 'none'; "
    "base-uri 'none'";
constexpr std::string_view kSandbox = "allow-popups allow-popups-to-escape-sandbox";

std::string escaped(std::string_view text) {
    std::string out;
    put_escaped(out, text);
    return out;
}

std::string head(std::string_view style) {
    return "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" "
           "content=\"" +
           std::string(kPolicy) + "\"><style>" + std::string(style) + "</style>";
}

std::string frame(const Sanitized& creative, PreviewSize size) {
    const std::string document =
        head("html,body{margin:0;overflow:hidden}") + "<base target=\"_blank\">" + creative.html;
    const std::string width = size.width == 0 ? "100%" : std::to_string(size.width);
    const std::string height = std::to_string(size.height == 0 ? 400 : size.height);
    return "<iframe title=\"Advertisement\" referrerpolicy=\"no-referrer\" width=\"" + width +
           "\" height=\"" + height + "\" sandbox=\"" + std::string(kSandbox) + "\" srcdoc=\"" +
           escaped(document) + "\"></iframe>\n";
}

std::string removed_list(const Sanitized& creative) {
    if (creative.removed.empty()) {
        return "<p>Nothing was removed.</p>\n";
    }
    std::string out = "<p>Removed:</p>\n<ul>\n";
    for (const auto& what : creative.removed) {
        out += "<li>" + escaped(what) + "</li>\n";
    }
    return out + "</ul>\n";
}

}  // namespace

std::string image_markup(const std::string& src, const std::string& alt, PreviewSize size) {
    std::string tag = "<img src=\"" + escaped(src) + "\" alt=\"" + escaped(alt) + "\"";
    if (size.width != 0) {
        tag += " width=\"" + std::to_string(size.width) + "\" height=\"" +
               std::to_string(size.height) + "\"";
    }
    return tag + ">";
}

std::string native_markup(const std::string& title, const std::string& body,
                          const std::string& image) {
    std::string markup = image.empty() ? "" : "<p>" + image_markup(image, title, {}) + "</p>";
    markup += title.empty() ? "" : "<h2>" + escaped(title) + "</h2>";
    return markup + (body.empty() ? "" : "<p>" + escaped(body) + "</p>");
}

std::string preview_page(const Sanitized& creative, const std::string& name, PreviewSize size) {
    return head("body{font:14px sans-serif;margin:2em}iframe{border:1px dashed #999}") +
           "\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>Preview of " +
           escaped(name) + "</title>\n<h1>" + escaped(name) + "</h1>\n" + frame(creative, size) +
           removed_list(creative) + "<p>Policy " + std::to_string(kPolicyVersion) + ", " +
           std::to_string(creative.html.size()) + " bytes.</p>\n";
}

}  // namespace ads::creative
