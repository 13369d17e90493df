# nginx compiles C++ with the flags of C; what C++ needs is added per object.
# The catalog compiler may throw behind its one entry; nothing else does.
ads_unique=-fno-gnu-unique  # a flag that clang does not know and does not need
[ "$NGX_CC_NAME" != clang ] || ads_unique=
ads_flags="-std=c++20 -O2 -fvisibility=hidden $ads_unique -Wno-missing-field-initializers \
    -DADS_TEST_CLOCK=${ADS_TEST_CLOCK:-0} $ADS_CFLAGS"
for ads_src in $ads_sources; do
    ads_dir=$(basename $(dirname "$ads_src"))
    ads_object="$NGX_OBJS/addon/$ads_dir/$(basename "$ads_src" .cpp).$ngx_objext"
    case $ads_dir in
        catalog) ads_more= ;;
        *)       ads_more="-fno-exceptions -fno-rtti" ;;
    esac
    echo "$ads_object: CFLAGS += $ads_flags $ads_more" >> $NGX_MAKEFILE
done
