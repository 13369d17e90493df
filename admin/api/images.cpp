// Images: taken for creatives, and creatives to look at.
#include <fmt/format.h>

#include "api/ownership.hpp"
#include "api/route.hpp"
#include "creative/preview.hpp"
#include "lib/catalog/images.hpp"
#include "lib/manage/read.hpp"

namespace ads::api {

using admin::Kind;
using admin::text_at;

namespace {

// The document of a frame, alone: it runs no script and has no origin, wherever it is opened.
constexpr const char* kPreviewPolicy =
    "sandbox; default-src 'none'; img-src 'self' https: data:; style-src 'unsafe-inline'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

Response upload(Call& call) {
    const auto stored =
        admin::store_image(call.raw, call.config.image_folder, "the image", call.flag("dry_run"));
    Json root(json_object());
    const auto set = [&](const char* name, json_t* value) {
        json_object_set_new(root.get(), name, value);
    };
    set("url", admin::text_json(call.config.image_base + stored.name));
    set("type", admin::text_json(name_of(stored.image.type)));
    set("width", admin::number_json(stored.image.width));
    set("height", admin::number_json(stored.image.height));
    set("bytes", admin::number_json(call.raw.size()));
    set("existed", json_boolean(stored.existed));
    return {call.flag("dry_run") ? 200 : 201, std::move(root)};
}

std::string markup_of(const json_t* creative) {
    const json_t* content = json_object_get(creative, "content");
    const std::string type = text_at(creative, "type");
    const creative::PreviewSize size{static_cast<unsigned>(admin::number_at(creative, "width")),
                                     static_cast<unsigned>(admin::number_at(creative, "height"))};
    if (type == "html") {
        return text_at(content, "markup");
    }
    if (type == "image") {
        return creative::image_markup(text_at(content, "src"), text_at(content, "alt"), size);
    }
    if (type == "native") {
        return creative::native_markup(text_at(content, "title"), text_at(content, "body"),
                                       text_at(content, "image"));
    }
    return "<p>A third party's tag runs on pages only, not here.</p>";
}

Response preview(Call& call) {
    need_id(call, Kind::creative);
    need_own(call, Kind::creative);
    const Json creative = admin::read_object(call.connections.reading(), Kind::creative, call.id);
    Response response{200, nullptr, {{"Content-Security-Policy", kPreviewPolicy}}};
    response.html =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Preview</title>"
        "<style>html,body{margin:0;font:14px sans-serif;background:#fff;color:#000}</style>" +
        markup_of(creative.get()) + "</html>\n";
    return response;
}

}  // namespace

void add_image_routes(std::vector<Route>& table) {
    table.push_back({"POST",
                     "/images",
                     "uploadImage",
                     "Put an image where nginx serves it",
                     kManages,
                     {{"dry_run", R"({"type":"string","enum":["1"]})", "Only look at it"}},
                     kRawBody,
                     "Image",
                     201});
    table.back().run = upload;
    table.push_back({"GET",
                     "/creatives/{id}/preview",
                     "previewCreative",
                     "The creative as a document for a sandboxed frame",
                     kReadsOwn,
                     {{"version", R"({"type":"string"})", "For caches: another address per edit"}},
                     nullptr,
                     kHtml});
    table.back().run = preview;
}

}  // namespace ads::api
