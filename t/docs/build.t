# scripts/build-module: when it configures again. nginx's source tree is replaced by one whose
# configure records its arguments.
use strict;
use warnings;

use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;

my $dir = tempdir('adstest-XXXXXXXX', TMPDIR => 1, CLEANUP => 1);

sub put {
    my ($name, $text, $mode) = @_;
    (my $folder = "$dir/$name") =~ s{/[^/]*$}{};
    make_path($folder);
    open my $out, '>', "$dir/$name" or die "$name: $!";
    print {$out} $text;
    close $out or die "$name: $!";
    chmod $mode // 0644, "$dir/$name";
    return;
}

put('nginx/src/core/nginx.h', qq{#define NGINX_VERSION "1.0.0"\n});
put('nginx/configure', <<'EOS', 0755);
#!/bin/sh
for argument; do
    case $argument in
        --builddir=*) out=${argument#*=} ;;
        --add-dynamic-module=*) module=${argument#*=} ;;
        --with-cc=*) cc=${argument#*=} ;;
    esac
done
mkdir -p "$out"
echo configured >> "$out/../calls"
printf 'modules:\n\techo "%s %s clock=%s" > %s/ngx_http_ads_module.so\n' "$module" "$cc" "$ADS_TEST_CLOCK" "$out" > "$out/Makefile"
EOS
make_path("$dir/original/scripts", "$dir/original/src");
copy($_, "$dir/original/$_") or die "$_: $!" for qw(scripts/build-module scripts/progress config config.make);
chmod 0755, "$dir/original/scripts/$_" for qw(build-module progress);
put("original/src/$_", '') for 'a.cpp', 'ngx/endpoint/clock.cpp';

# The sources of the module, and how often it has been configured.
sub built {
    my ($tree, %env) = @_;
    local %ENV = (%ENV, NGINX_SRC => "$dir/nginx", %env);
    my $said = qx('$dir/$tree/scripts/build-module' '$dir/$tree/build' 2>&1);
    is $?, 0, "$tree builds" or diag $said;
    open my $in, '<', "$dir/$tree/build/ngx_http_ads_module.so" or die $!;
    chomp(my $how = <$in>);
    open my $calls, '<', "$dir/$tree/build/calls" or die $!;
    my $times = () = <$calls>;
    return ($how =~ s{^\Q$dir\E/}{}r, $times);
}

delete @ENV{qw(CC ADS_TEST_CLOCK ADS_CFLAGS)};
is_deeply [ built('original') ], [ 'original cc clock=0', 1 ], 'the first time it configures';
is_deeply [ built('original') ], [ 'original cc clock=0', 1 ], 'and not when nothing has changed';
is system('cp', '-a', "$dir/original", "$dir/copy"), 0, 'a copy, with what was built';
is_deeply [ built('copy') ], [ 'copy cc clock=0', 2 ], 'builds its own sources';
is_deeply [ built('copy', CC => 'clang') ], [ 'copy clang clock=0', 3 ], 'another compiler';
is_deeply [ built('copy', CC => 'clang', ADS_TEST_CLOCK => 1) ], [ 'copy clang clock=1', 4 ], 'with the test clock';
put('copy/src/b.cpp', '');
is_deeply [ built('copy', CC => 'clang', ADS_TEST_CLOCK => 1) ], [ 'copy clang clock=1', 5 ], 'a new source file';

# Code without the test clock is compiled once for both modules.
my $tree = "$dir/original";
local $ENV{NGINX_SRC} = "$dir/nginx";
is system("$tree/scripts/build-module $tree/build/module"), 0, 'the module';
put("original/build/module/objs/addon/$_", '') for 'core/token.o', 'ngx/module.o', 'endpoint/clock.o';
is system("ADS_TEST_CLOCK=1 $tree/scripts/build-module $tree/build/test"), 0, 'the module for tests';
ok -e "$tree/build/test/objs/addon/core/token.o", 'has the objects of the module';
ok !-e "$tree/build/test/objs/addon/$_", "but not $_, which knows the clock" for 'ngx/module.o', 'endpoint/clock.o';
is system("ADS_CFLAGS=-O0 ADS_TEST_CLOCK=1 $tree/scripts/build-module $tree/build/test"), 0, 'with other flags';
ok !-e "$tree/build/test/objs/addon/core/token.o", 'it compiles its own';
done_testing;
