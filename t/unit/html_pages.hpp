// Pages cut at their slots, and random ones.
#pragma once

#include <list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/html/attributes.hpp"
#include "core/html/cutter.hpp"

namespace ads::html {

struct CutPage {
    std::string text;  // with each slot as [PLACEMENT|FALLBACK]
    std::vector<std::string> lists;
    std::vector<size_t> slots;  // where what they contain begins
    bool doubt = false;
    size_t most_kept = 0;
};

// The page, given in parts; each is in memory of its own, so that a sanitizer sees a read behind
// it.
inline CutPage cut_page(const std::vector<std::string_view>& parts,
                        std::string_view element = "page-spot") {
    std::list<std::string> memory;
    const auto allocate = [](void* context, size_t size) -> void* {
        return static_cast<std::list<std::string>*>(context)->emplace_back(size, '\0').data();
    };
    Cutter cutter(element, allocate, &memory);
    CutPage page;
    size_t at = 0;
    for (size_t i = 0; i <= parts.size(); i++) {
        const std::vector<char> part = i < parts.size()
                                           ? std::vector<char>(parts[i].begin(), parts[i].end())
                                           : std::vector<char>();
        cutter.feed({part.data(), part.size()}, i == parts.size());
        for (;;) {
            const Piece piece = cutter.next();
            if (piece.kind == Piece::Kind::none) {
                break;
            }
            switch (piece.kind) {
                case Piece::Kind::slot: {
                    std::string_view placement;
                    find_attribute(piece.text.substr(0, piece.content), "placement", placement);
                    page.text += "[" + std::string(placement) + "|";
                    page.text +=
                        piece.text.substr(piece.content, piece.content_end - piece.content);
                    page.text += "]";
                    page.slots.push_back(at + piece.content);
                    at += piece.text.size();
                    break;
                }
                case Piece::Kind::list:
                    page.lists.emplace_back(piece.text);
                    break;
                case Piece::Kind::doubt:
                    page.doubt = true;
                    break;
                default:
                    page.text += piece.text;
                    at += piece.text.size();
            }
        }
    }
    for (const auto& block : memory) {
        page.most_kept = std::max(page.most_kept, block.size());
    }
    return page;
}

inline CutPage cut_page(std::string_view page) {
    return cut_page(std::vector{page});
}

// Markup that is hard to read right, in any order.
inline std::string random_page(std::mt19937_64& random, size_t pieces) {
    static constexpr std::string_view kPieces[] = {
        "<page-spot placement=\"a\">",
        "</page-spot>",
        "<page-spot placement=b></page-spot>",
        "<PAGE-SPOT\nplacement = 'c' x=\">\">fall<b>back</b></Page-Spot >",
        "<page-spot",
        "<page-spo>",
        "<page-spots>",
        "<pa",
        "<p>",
        "</p>",
        "<div class=\"a b\" id='x>y'>",
        "</div>",
        "<br/>",
        "<img src=a>",
        "<a href=x?a=\"b>c\">",
        "</a>",
        "text & more ",
        "<",
        ">",
        "\"",
        "'",
        "/",
        "=",
        "-",
        "--",
        "!",
        "</",
        "</>",
        "<?xml ?>",
        "<!--",
        "-->",
        "--!>",
        "<!-->",
        "<!--->",
        "<!doctype html>",
        "<!x>",
        "<![CDATA[",
        "]]>",
        "]",
        "<script>",
        "</script>",
        "<script>x<!--<script></script>--></script>",
        "<style>",
        "</style>",
        "<title>",
        "</title>",
        "<textarea>",
        "</textarea>",
        "<xmp>",
        "</xmp>",
        "<iframe>",
        "</iframe>",
        "<template>",
        "</template>",
        "<select>",
        "</select>",
        "<option>",
        "<input>",
        "<svg>",
        "</svg>",
        "<svg/>",
        "<path/>",
        "<g>",
        "</g>",
        "<desc>",
        "</desc>",
        "<foreignObject>",
        "</foreignObject>",
        "<math>",
        "<mi>",
        "</mi>",
        "</math>",
        "<table>",
        "<tr><td>",
        "</td></tr>",
        "</table>",
        "<b>",
        "</b>",
        "<li>",
        " ",
        "\n",
        "<meta name=\"page-spots\" content=\"a,b\">",
        "<meta charset=utf-8>",
        "<page-spot placement=d/>",
        "\xc3\xa9",
        "x",
    };
    std::string page;
    for (size_t i = 0; i < pieces; i++) {
        page += random() % 4 == 0 ? "<page-spot placement=b>x</page-spot>" : "";
        page += kPieces[random() % std::size(kPieces)];
    }
    return page;
}

}  // namespace ads::html
