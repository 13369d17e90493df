#include "io/frequency_file.hpp"

namespace ads {

bool FrequencyFile::open(const std::string& folder, uint64_t bytes, std::string& error,
                         std::string& notice) {
    frequency_ = {};
    MappedFile::Contents contents;
    contents.what = "frequency caps start";
    contents.head = sizeof(FrequencyHead);
    contents.size = Frequency::size(bytes);
    contents.format = [&](std::span<std::byte> memory) { Frequency::format(memory, bytes); };
    contents.check = [](std::span<std::byte> memory) { return Frequency::check(memory); };
    contents.reach = [](std::span<std::byte> memory) { return memory.size(); };
    if (!file_.open(folder, "frequency", contents, error, notice)) {
        return false;
    }
    frequency_ = Frequency::attach(file_.memory());
    const uint64_t had = reinterpret_cast<const FrequencyHead*>(file_.memory())->bytes;
    if (had != bytes) {
        notice = "\"" + folder + "/frequency\" keeps its " + std::to_string(had) +
                 " bytes for frequency caps: to resize, stop nginx and move the file away";
    }
    return true;
}

bool FrequencyFile::without_file(uint64_t bytes) noexcept {
    frequency_ = {};
    const size_t size = Frequency::size(bytes);
    if (!file_.without_file(size)) {
        return false;
    }
    Frequency::format({file_.memory(), size}, bytes);
    frequency_ = Frequency::attach(file_.memory());
    return true;
}

}  // namespace ads
