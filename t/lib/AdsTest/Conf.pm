package AdsTest::Conf;

=head1 NAME

AdsTest::Conf - the texts of nginx.conf, and where nginx and modules are

=head1 FUNCTIONS

    binary(), modules()         TEST_NGINX_BINARY, TEST_NGINX_LOAD_MODULES as absolute paths
    worker_user()               value for "user", or undef
    standard(%o)                a server on %%PORT%%, for AdsTest::Nginx
    complete($text, $o)         $text with what its main context lacks
    for_block(%o)               the whole configuration for a block of the data format

=cut

use strict;
use warnings;

use File::Spec ();

sub binary {
    my $binary = $ENV{TEST_NGINX_BINARY} || 'nginx';
    return File::Spec->rel2abs($binary) if $binary =~ m{/};
    for my $dir (File::Spec->path, '/usr/sbin', '/usr/local/sbin') {
        return "$dir/$binary" if -x "$dir/$binary" && !-d _;
    }
    return $binary;
}

sub modules {
    return map { -e $_ ? File::Spec->rel2abs($_) : $_ } split ' ', $ENV{TEST_NGINX_LOAD_MODULES} // '';
}

# As root the workers stay root, since the prefix is private to it.
sub worker_user { return $ENV{TEST_NGINX_WORKER_USER} // ($> == 0 ? 'root' : undef) }

# What a new binary (USR2) must inherit.
my @Env = qw(LD_PRELOAD LD_LIBRARY_PATH ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS);

my @TempPaths = qw(client_body proxy fastcgi uwsgi scgi);

# Temporary directories below $prefix, unless $text sets them itself.
sub _temp_paths {
    my ($prefix, $text) = @_;
    return join '', map { "    $_ $prefix/" . ($_ =~ s/_path$//r) . ";\n" }
        grep { $text !~ /\b$_\b/ } map { "${_}_temp_path" } @TempPaths;
}

sub standard {
    my (%o) = @_;
    my ($main, $http, $server) = map { $_ // '' } @o{qw(main http server)};
    my $temp = _temp_paths('%%PREFIX%%', $http);
    return <<"EOC";
$main
http {
    access_log off;
    default_type text/plain;
$temp
$http
    server {
        listen 127.0.0.1:%%PORT%%;
        server_name localhost;
        root %%PREFIX%%/html;
$server
    }
}
EOC
}

# Only the text outside of blocks counts. $o: daemon, workers, modules,
# log_file, log_level, pid_file.
sub complete {
    my ($text, $o) = @_;

    (my $main = $text) =~ s/#.*//g;
    1 while $main =~ s/\{[^{}]*\}/;/g;
    my @lines  = map { "load_module $_;" } @{ $o->{modules} };
    my @wanted = (
        [ daemon           => $o->{daemon}  ? 'on' : 'off' ],
        [ master_process   => $o->{workers} ? 'on' : 'off' ],
        [ worker_processes => $o->{workers} || 1 ],
        [ error_log        => "$o->{log_file} $o->{log_level}" ],
        [ pid              => $o->{pid_file} ],
    );
    push @wanted, [ user => worker_user() ] if worker_user();
    for my $directive (@wanted) {
        my ($name, $value) = @$directive;
        push @lines, "$name $value;" unless $main =~ /(?:^|;)\s*\Q$name\E\s/;
    }
    push @lines, map { "env $_;" } @Env, @{ $o->{env} // [] };
    my $result = join("\n", @lines) . "\n$text";
    return $result if $main =~ /(?:^|;)\s*events\b/;

    # Last: load_module is refused after it.
    my $connections = $o->{worker_connections} // 256;
    return "$result\nevents {\n    worker_connections $connections;\n    accept_mutex off;\n}\n";
}

# %o: as for complete(), and prefix, port, server_name, main, post_main,
# http, server, preamble, root_location.
sub for_block {
    my (%o) = @_;
    my ($main, $post_main, $http, $server, $preamble) = map { $_ // '' } @o{qw(main post_main http server preamble)};
    my $temp = _temp_paths($o{prefix}, $http);
    (my $name = $o{server_name}) =~ s/([\\'])/\\$1/g;
    my $root = !$o{root_location} ? '' : <<"EOC";
        location / {
            root $o{prefix}/html;
            index index.html index.htm;
        }
EOC

    my $text = <<"EOC";
$main

http {
    access_log $o{prefix}/logs/access.log;
    default_type text/plain;
    keepalive_timeout 68s;
$temp
$http
    server {
        listen 127.0.0.1:$o{port};
        server_name '$name';
        client_max_body_size 30M;

$preamble
$server

$root
    }
}

$post_main
EOC
    return complete($text, \%o);
}

1;
