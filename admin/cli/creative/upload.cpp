// nginx-ads creative upload: puts image files where nginx serves them. The name is made
// of the content: the same file has one name for ever, and no name has a second content.
#include "cli/creative/upload.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "cli/common/options.hpp"
#include "cli/common/table.hpp"
#include "creative/image.hpp"
#include "lib/base/files.hpp"
#include "lib/base/json.hpp"
#include "lib/catalog/images.hpp"

namespace ads::cli {

namespace {

using creative::ImageFile;

struct Options {
    std::vector<std::string> files;
    std::string folder = kImageFolder;
    std::string url = kImageBase;
    bool dry_run = false;
    size_t most_bytes = creative::kMostImageBytes;
    bool json = false;
};

struct Uploaded {
    ImageFile image;
    std::string error;
    std::string name;
    size_t bytes = 0;
    bool existed = false;
};

// Before it is read: a disk's image has no place in memory.
void check_size(const std::string& file, const Options& options) {
    struct stat info;
    if (stat(file.c_str(), &info) != 0) {
        throw Failure(Exit::failed, fmt::format("cannot read {}: {}.", file, std::strerror(errno)));
    }
    if (!S_ISREG(info.st_mode)) {
        throw Failure(Exit::bad_input, fmt::format("{}: refused: it is not a regular file.", file));
    }
    if (static_cast<uint64_t>(info.st_size) > options.most_bytes) {
        throw Failure(
            Exit::bad_input,
            fmt::format("{}: refused: it has {} bytes, at most {} are allowed.", file,
                        grouped(static_cast<uint64_t>(info.st_size)), grouped(options.most_bytes)));
    }
}

std::string name_fault(const std::string& file, const ImageFile& image) {
    const size_t slash = file.rfind('/');
    const std::string base = slash == file.npos ? file : file.substr(slash + 1);
    if (base.find('.') == base.npos || creative::type_of_name(base) == image.type) {
        return {};
    }
    return fmt::format("its content is {}, unlike its file name", name_of(image.type));
}

Uploaded upload(const std::string& file, const Options& options) {
    check_size(file, options);
    const std::string bytes = read_input(file);
    Uploaded uploaded;
    uploaded.bytes = bytes.size();
    const ImageFile image = creative::read_image(bytes);
    if (const std::string fault = image.fault.empty() ? name_fault(file, image) : "";
        !fault.empty()) {
        throw Failure(Exit::bad_input, fmt::format("{}: refused: {}.", file, fault));
    }
    const auto stored = admin::store_image(bytes, options.folder, file, options.dry_run);
    uploaded.image = stored.image;
    uploaded.name = stored.name;
    uploaded.existed = stored.existed;
    return uploaded;
}

json_t* uploaded_json(const std::string& file, const Uploaded& uploaded, const Options& options) {
    json_t* object = json_object();
    const bool ok = uploaded.error.empty();
    json_object_set_new(object, "file", text_json(file));
    json_object_set_new(object, "ok", json_boolean(ok));
    json_object_set_new(object, "error", ok ? json_null() : text_json(uploaded.error));
    if (ok) {
        json_object_set_new(object, "url", text_json(options.url + uploaded.name));
        json_object_set_new(object, "path", text_json(options.folder + "/" + uploaded.name));
        json_object_set_new(object, "type", text_json(name_of(uploaded.image.type)));
        json_object_set_new(object, "width", number_json(uploaded.image.width));
        json_object_set_new(object, "height", number_json(uploaded.image.height));
        json_object_set_new(object, "bytes", number_json(uploaded.bytes));
        json_object_set_new(object, "existed", json_boolean(uploaded.existed));
    }
    return object;
}

void show(const std::string& file, const Uploaded& uploaded, const Options& options) {
    out().put(fmt::format("{}: {}{} {} × {} {}, {} bytes{}\n", printable(shown_name(file)),
                          options.url, uploaded.name, uploaded.image.width, uploaded.image.height,
                          name_of(uploaded.image.type), grouped(uploaded.bytes),
                          uploaded.existed ? ", already present" : ""));
}

Exit upload_all(const Options& options) {
    Exit exit = Exit::ok;
    const Json list(json_array());
    for (const auto& file : options.files) {
        Uploaded uploaded;
        try {
            uploaded = upload(file, options);
        } catch (const Failure& e) {
            exit = worse(exit, e.exit());
            uploaded.error = e.what();
            complain(e.what());
        }
        if (options.json) {
            json_array_append_new(list.get(), uploaded_json(file, uploaded, options));
        } else if (uploaded.error.empty()) {
            show(file, uploaded, options);
        }
    }
    if (options.json && options.files.size() == 1) {
        print_json(Json(json_incref(json_array_get(list.get(), 0))));
    } else if (options.json) {
        print_json(list);
    }
    return exit;
}

std::string prefix_fault(const std::string& text) {
    return text.ends_with('/') && (text.starts_with('/') || text.starts_with("https://"))
               ? std::string()
               : fmt::format("must begin with / or https:// and end with /, not \"{}\"",
                             printable(text));
}

Validator is_prefix() {
    return Validator(prefix_fault, "PREFIX");
}

}  // namespace

UploadedImage upload_image(const std::string& file, const std::string& folder,
                           const std::string& base, bool dry_run) {
    if (const std::string fault = prefix_fault(base); !fault.empty()) {
        throw Failure(Exit::usage, fmt::format("--image-base {}.", fault));
    }
    Options options;
    options.folder = folder;
    options.dry_run = dry_run;
    const Uploaded uploaded = upload(file, options);
    return {base + uploaded.name, uploaded.image.width, uploaded.image.height};
}

void add_upload(Arguments& creative, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* app =
        creative.add_subcommand("upload", "Copy image files to the folder that nginx serves");
    app->add_option("FILE", options->files, "PNG, JPEG, GIF, WebP or AVIF")
        ->required()
        ->option_text("...");
    app->add_option("--folder", options->folder,
                    "Folder that nginx serves (default /var/lib/nginx-ads/images)")
        ->option_text("FOLDER");
    app->add_option("--url", options->url, "URL prefix of the folder (default /img/)")
        ->check(is_prefix())
        ->option_text("PREFIX");
    app->add_option("--max-bytes", options->most_bytes, "Maximum size of a file (default 2097152)")
        ->check(whole_number(1, 100 << 20))
        ->option_text("N");
    app->add_flag("--json", options->json, "Print JSON: an object, or an array for several files");
    app->footer(
        "The type is taken from the content, and so is the name: the same file always has the\n"
        "same address, which may be cached forever. The exit code is 1 if a file is refused.\n"
        "\n"
        "Example:\n"
        "  nginx-ads creative upload banner.png --folder /var/lib/nginx-ads/images");
    app->callback([options, &chosen] { chosen = [options] { return upload_all(*options); }; });
}

}  // namespace ads::cli
