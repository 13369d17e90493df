# nginx compiles C++ with the flags of C; what C++ needs is added per object.
# gcc warns falsely of memory functions that it inlines from a compiled header.
ads_gcc="-fno-gnu-unique -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread"
[ "$NGX_CC_NAME" != clang ] || ads_gcc=  # which does not know them, nor need them
# -g1: names and lines in a backtrace; all of -g takes a third longer.
ads_flags="-std=c++20 -O2 -g1 -fvisibility=hidden $ads_gcc -Wno-missing-field-initializers"
# The catalog compiler may throw behind its one entry; nothing else does.
ads_plain="-fno-exceptions -fno-rtti"
ads_catalog=-DADS_PRECOMPILED_catalog
# The headers of libraries, once for each set of flags; clang does without.
if [ "$NGX_CC_NAME" != clang ]; then
    mkdir -p $NGX_OBJS/addon
    for ads_set in plain catalog; do
        eval "ads_more=\$ads_$ads_set"
        ads_header=$NGX_OBJS/addon/$ads_set.hpp
        cp "$ngx_addon_dir/src/precompiled.hpp" $ads_header
        cat << END >> $NGX_MAKEFILE

$ads_header.gch: $ngx_addon_dir/src/precompiled.hpp
	cp $ngx_addon_dir/src/precompiled.hpp $ads_header
	\$(CC) -c -fPIC \$(CFLAGS) $ads_flags $ads_more $ADS_CFLAGS -x c++-header -o $ads_header.gch $ads_header

END
        eval "ads_$ads_set=\"$ads_more -include $ads_header\""
    done
fi
for ads_src in $ads_sources; do
    ads_dir=$(basename $(dirname "$ads_src"))
    ads_object="$NGX_OBJS/addon/$ads_dir/$(basename "$ads_src" .cpp).$ngx_objext"
    # Only src/ngx knows of the test clock: scripts/build-module takes the rest from the shipped module.
    case $ads_src in
        src/core/catalog/*) ads_set=catalog ads_more=$ads_catalog ;;
        src/ngx/*) ads_set=plain ads_more="$ads_plain -DADS_TEST_CLOCK=${ADS_TEST_CLOCK:-0}" ;;
        *)       ads_set=plain ads_more=$ads_plain ;;
    esac
    # What no request waits for compiles faster without the last optimizations.
    case $ads_dir/$(basename "$ads_src" .cpp) in
        conf/*|status/*|ngx/*|io/recall|io/rebuild|io/shipper|keeper/publish|keeper/catalog_feed|\
        */parse_creative|*/parse_experiment|*/formats|*/zones|*/calendar|*/fragments) ads_more="-O1 $ads_more" ;;
    esac
    [ "$NGX_CC_NAME" = clang ] || echo "$ads_object: $NGX_OBJS/addon/$ads_set.hpp.gch" >> $NGX_MAKEFILE
    echo "$ads_object: private CFLAGS += $ads_flags $ads_more $ADS_CFLAGS" >> $NGX_MAKEFILE
done
