#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file.hpp"
#include "io/frequency_file.hpp"
#include "io/trusted_path.hpp"
#include "temp_folder.hpp"

namespace {

using namespace ads;

constexpr uid_t kWorker = 65534;
constexpr gid_t kGroup = 65533;

class WorkerFolderTest : public testing::Test {
protected:
    void SetUp() override {
        if (geteuid() != 0) {
            GTEST_SKIP() << "only root gives folders away";
        }
        ASSERT_EQ(chmod(folder_.file("").c_str(), 0755), 0);
    }

    std::string check(const std::string& path) const {
        return check_worker_folder(path, {kWorker, {kGroup}, "worker"});
    }
    void make(const std::string& path, uid_t uid, gid_t gid, mode_t mode) const {
        ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
        ASSERT_EQ(chown(path.c_str(), uid, gid), 0);
        ASSERT_EQ(chmod(path.c_str(), mode), 0);
    }

    TempFolder folder_;  // in a sticky folder of root
};

TEST_F(WorkerFolderTest, ParentOfRootIsGood) {
    make(folder_.file("a"), 0, 0, 0775);
    EXPECT_EQ(check(folder_.file("a/spool")), "");
    EXPECT_EQ(check(folder_.file("a/spool//")), "");
    make(folder_.file("a/spool"), kWorker, kGroup, 0750);
    EXPECT_EQ(check(folder_.file("a/spool")), "") << "the folder itself is the worker's";
}

TEST_F(WorkerFolderTest, ParentThatTheWorkerCanWriteIsNot) {
    const struct {
        uid_t uid;
        gid_t gid;
        mode_t mode;
    } bad[] = {{kWorker, 0, 0500}, {0, kGroup, 0770}, {0, 0, 0702}, {0, 0, 01777}};
    int n = 0;
    for (const auto& one : bad) {
        const std::string name = folder_.file("p" + std::to_string(n++));
        make(name, one.uid, one.gid, one.mode);
        EXPECT_EQ(check(name + "/spool"),
                  "the folder \"" + name + "\" can be written by the worker user \"worker\"");
    }
    make(folder_.file("other"), 1, 1, 0755);
    EXPECT_EQ(check(folder_.file("other/spool")),
              "the folder \"" + folder_.file("other") + "\" must belong to root");
    EXPECT_NE(check(folder_.file("none/spool")).find("No such file"), std::string::npos);
}

TEST_F(WorkerFolderTest, FoldersAboveCountAsWell) {
    make(folder_.file("w"), kWorker, 0, 0755);
    make(folder_.file("w/root"), 0, 0, 0755);
    EXPECT_NE(check(folder_.file("w/root/spool")), "");
    make(folder_.file("sticky"), 0, 0, 01777);
    make(folder_.file("sticky/root"), 0, 0, 0755);
    EXPECT_EQ(check(folder_.file("sticky/root/spool")), "") << "nobody else can rename it";
    make(folder_.file("mine"), kWorker, 0, 01755);
    make(folder_.file("mine/root"), 0, 0, 0755);
    EXPECT_NE(check(folder_.file("mine/root/spool")), "") << "the owner can";
}

TEST_F(WorkerFolderTest, TheWorkerMustPassThroughFoldersAbove) {
    make(folder_.file("closed"), 0, 0, 0700);
    make(folder_.file("closed/a"), 0, 0, 0755);
    EXPECT_EQ(check(folder_.file("closed/a/spool")),
              "the worker user \"worker\" has no search permission on \"" + folder_.file("closed") +
                  "\": run \"chmod o+x\" on it");
    ASSERT_EQ(chmod(folder_.file("closed").c_str(), 0711), 0);
    EXPECT_EQ(check(folder_.file("closed/a/spool")), "");
    ASSERT_EQ(chown(folder_.file("closed").c_str(), 0, kGroup), 0);
    ASSERT_EQ(chmod(folder_.file("closed").c_str(), 0750), 0);
    EXPECT_EQ(check(folder_.file("closed/a/spool")), "") << "by its group";
}

TEST_F(WorkerFolderTest, LinksAboveAreFollowedWhereOnlyRootMakesThem) {
    make(folder_.file("a"), 0, 0, 0755);
    make(folder_.file("sticky"), 0, 0, 01777);
    ASSERT_EQ(symlink("a", folder_.file("l").c_str()), 0);
    EXPECT_EQ(check(folder_.file("l/spool")), "");
    ASSERT_EQ(symlink("../a", folder_.file("sticky/l").c_str()), 0);
    EXPECT_EQ(check(folder_.file("sticky/l/spool")), "");
    ASSERT_EQ(lchown(folder_.file("sticky/l").c_str(), kWorker, 0), 0);
    EXPECT_NE(check(folder_.file("sticky/l/spool")).find("belongs to the worker user"),
              std::string::npos);
    ASSERT_EQ(symlink("sticky/l", folder_.file("ll").c_str()), 0);
    EXPECT_NE(check(folder_.file("ll/spool")), "") << "a link to a link";
    ASSERT_EQ(symlink("loop", folder_.file("loop").c_str()), 0);
    EXPECT_NE(check(folder_.file("loop/spool")).find("Too many levels"), std::string::npos);
}

TEST_F(WorkerFolderTest, LinkInItsPlaceIsRefused) {
    make(folder_.file("a"), 0, 0, 0755);
    ASSERT_EQ(symlink("a", folder_.file("spool").c_str()), 0);
    make(folder_.file("b"), 0, 0, 0755);
    ASSERT_EQ(symlink("../a", folder_.file("b/spool").c_str()), 0);
    EXPECT_EQ(check(folder_.file("b/spool")), "it is a symbolic link");
    EXPECT_EQ(check(folder_.file("b/spool/")), "it is a symbolic link");
    EXPECT_NE(check("/"), "");
}

// ---- inside such a folder ----

TEST(OwnFileTest, LinksAreReplacedAndNotFollowed) {
    TempFolder folder;
    const std::string path = folder.file("f");
    const std::string victim = folder.file("victim");
    TempFolder::write(victim, "secret");
    for (const auto& name : {path, path + ".new"}) {
        ASSERT_EQ(symlink(victim.c_str(), name.c_str()), 0);
    }
    std::string text;
    EXPECT_EQ(read_own_file(path, text), ELOOP);
    EXPECT_EQ(replace_file(path, "fresh"), 0);
    EXPECT_EQ(TempFolder::read(victim), "secret");
    EXPECT_EQ(read_own_file(path, text), 0);
    EXPECT_EQ(text, "fresh");
    EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(path + ".new")));
}

TEST(OwnFileTest, OnlyRegularFilesAreRead) {
    TempFolder folder;
    std::string text;
    ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
    EXPECT_EQ(read_own_file(folder.file("pipe"), text), EINVAL) << "and it does not wait";
    std::filesystem::create_directory(folder.file("d"));
    EXPECT_EQ(read_own_file(folder.file("d"), text), EINVAL);
    EXPECT_EQ(read_own_file(folder.file("none"), text), ENOENT);
}

TEST(OwnFileTest, FoldersInsideAreNotFollowedEither) {
    TempFolder folder;
    std::filesystem::create_directories(folder.file("spool/real"));
    std::filesystem::create_directory(folder.file("other"));
    TempFolder::write(folder.file("spool/real/f"), "inside");
    TempFolder::write(folder.file("other/f"), "outside");
    ASSERT_EQ(symlink("../other", folder.file("spool/link").c_str()), 0);
    EXPECT_TRUE(open_inside(folder.file("spool"), "real/f", O_RDONLY));
    EXPECT_FALSE(open_inside(folder.file("spool"), "link/f", O_RDONLY));
    ASSERT_EQ(symlink("spool", folder.file("l").c_str()), 0);
    EXPECT_TRUE(open_inside(folder.file("l"), "real/f", O_RDONLY)) << "the folder may be a link";
}

TEST(OwnFileTest, MappedFilesAreNotReachedByLinksOrOtherNames) {
    TempFolder folder;
    std::string error;
    std::string notice;
    constexpr uint64_t kBytes = 1 << 16;
    {
        FrequencyFile file;
        ASSERT_TRUE(file.open(folder.file("a"), kBytes, error, notice)) << error;
    }
    std::filesystem::create_directory(folder.file("b"));
    ASSERT_EQ(symlink("../a/frequency", folder.file("b/frequency").c_str()), 0);
    {
        FrequencyFile file;
        ASSERT_TRUE(file.open(folder.file("b"), kBytes, error, notice)) << error;
        EXPECT_NE(notice.find("it is a symbolic link"), std::string::npos) << notice;
    }
    EXPECT_FALSE(std::filesystem::is_symlink(folder.file("b/frequency")));
    std::filesystem::create_directory(folder.file("c"));
    ASSERT_EQ(link(folder.file("a/frequency").c_str(), folder.file("c/frequency").c_str()), 0);
    FrequencyFile file;
    ASSERT_TRUE(file.open(folder.file("c"), kBytes, error, notice)) << error;
    EXPECT_NE(notice.find("hard links"), std::string::npos) << notice;
}

}  // namespace
