#include "core/catalog/currency.hpp"

namespace ads::catalog {

namespace {

// Codes of three letters, one after the other.
constexpr std::string_view kTwo =
    "AEDAFNALLAMDANGAOAARSAUDAWGAZNBAMBBDBDTBGNBMDBNDBOBBOVBRLBSDBTNBWPBYNBZDCADCDFCHECHFCHWCNYCOP"
    "COUCRCCUPCVECZKDKKDOPDZDEGPERNETBEURFJDFKPGBPGELGHSGIPGMDGTQGYDHKDHNLHTGHUFIDRILSINRIRRJMDKES"
    "KGSKHRKPWKYDKZTLAKLBPLKRLRDLSLMADMDLMGAMKDMMKMNTMOPMRUMURMVRMWKMXNMXVMYRMZNNADNGNNIONOKNPRNZD"
    "PABPENPGKPHPPKRPLNQARRONRSDRUBSARSBDSCRSDGSEKSGDSHPSLESOSSRDSSPSTNSVCSYPSZLTHBTJSTMTTOPTRYTTD"
    "TWDTZSUAHUSDUSNUYUUZSVEDVESWSTXCDXCGYERZARZMWZWG";
constexpr std::string_view kNone = "BIFCLPDJFGNFISKJPYKMFKRWPYGRWFUGXUYIVNDVUVXAFXOFXPF";
constexpr std::string_view kThree = "BHDIQDJODKWDLYDOMRTND";
constexpr std::string_view kFour = "CLFUYW";

constexpr size_t kLetters = 3;
static_assert(kTwo.size() % kLetters == 0 && kNone.size() % kLetters == 0);

bool in(std::string_view list, std::string_view code) {
    for (size_t i = 0; i < list.size(); i += kLetters) {
        if (list.substr(i, kLetters) == code) {
            return true;
        }
    }
    return false;
}

}  // namespace

bool valid_currency(std::string_view code) {
    return in(kTwo, code) || in(kNone, code) || in(kThree, code) || in(kFour, code);
}

int currency_digits(std::string_view code) {
    return in(kNone, code) ? 0 : in(kThree, code) ? 3 : in(kFour, code) ? 4 : 2;
}

}  // namespace ads::catalog
