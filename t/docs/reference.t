# The reference agrees with the code: every directive, variable, command and key of the catalog has
# its entry, with the values of the code's own tables. Metrics and fields of the status are compared
# in t/status/metrics.t.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use File::Temp qw(tempdir);
use JSON::PP ();
use Test::More;

use AdsTest::Nginx;
use AdsTest::Ads;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

my $command = $ENV{ADS_COMMAND} || 'build/nginx-ads';
my $dir     = tempdir(CLEANUP => 1);
my $json    = JSON::PP->new->canonical->allow_nonref;    # of characters

sub slurp {
    my ($path) = @_;
    open my $in, '<:encoding(UTF-8)', $path or die "$path: $!";
    local $/;
    return scalar <$in>;
}

sub spew {
    my ($name, $text) = @_;
    open my $out, '>:encoding(UTF-8)', "$dir/$name" or die $!;
    print {$out} $text;
    close $out or die $!;
    return "$dir/$name";
}

# The output of a program.
sub said {
    open my $out, '-|:encoding(UTF-8)', @_ or die "$_[0]: $!";
    local $/;
    return scalar <$out>;
}

sub both_ways {
    my ($code, $docs, $what) = @_;
    my %code = map { $_ => 1 } @$code;
    my %docs = map { $_ => 1 } @$docs;
    is_deeply [ grep { !$docs{$_} } sort keys %code ], [], "each $what is documented";
    is_deeply [ grep { !$code{$_} } sort keys %docs ], [], "each documented $what is there";
    is scalar @$docs, scalar keys %docs, 'once';
    cmp_ok scalar @$code, '>', 5, 'of several';
    return;
}

# ---- directives and variables ---------------------------------------------------------

my $directives = slurp('docs/directives.md');

subtest 'directives' => sub {
    my %flags = slurp('src/ngx/conf/conf.cpp') =~ /\{ngx_string\("(ads_\w+)"\),\s*([A-Z0-9_|\s]+?),/g;
    delete $flags{ads_test_clock};
    my @documented = $directives =~ /^## (ads_\w+)$/mg;
    both_ways([ keys %flags ], \@documented, 'directive');
    for my $name (sort keys %flags) {
        my ($syntax, $context) = $directives =~ /^## $name\n\n> \*\*Syntax\*\* (.*) · \*\*Default\*\* .+ · \*\*Context\*\* (.+)$/m;
        like $syntax, qr/^`$name[ ;]/, "$name: the syntax";
        my $flags = $flags{$name} =~ s/ADS_ANYWHERE/NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF/r;
        my %names = (MAIN => 'http', SRV => 'server', LOC => 'location');
        is $context, join(', ', map { $flags =~ /NGX_HTTP_${_}_CONF/ ? $names{$_} : () } qw(MAIN SRV LOC)), 'where it may stand';
        like $directives, qr/^\|.*\[$name\]\(#$name\)/m, 'and a line in the list';
    }
};

subtest 'variables' => sub {
    my ($section) = $directives =~ /^## Variables\n(.*?)(?=^## |\z)/ms;
    both_ways([ map {"\$$_"} slurp('src/ngx/request/variables.cpp') =~ /\{"(ads_\w+)", \w+, \d\}/g ],
        [ map { /^\| ((?:`\$ads_\w+` ?)+)\|/ ? $1 =~ /`(\$ads_\w+)`/g : () } split /\n/, $section ], 'variable');
};

# ---- the command ----------------------------------------------------------------------

subtest 'commands' => sub {
    my $index = slurp('docs/commands/README.md');
    my $docs  = join '', map { slurp($_) } glob 'docs/commands/*.md';
    my @paths = map { /(\S.*)/ ? $1 : () } split /\|/, (said($command, qw(completion bash)) =~ /paths="\|([^"]*)"/)[0];
    cmp_ok scalar @paths, '>', 60, 'many';
    my %verbs = map { $_ => 1 } map { split /[ ,]+/ } slurp('docs/commands/manage.md') =~ /^## ([a-z, ]+)$/mg;
    my @missing;
    for my $path (@paths) {
        my ($first, $verb) = split / /, $path;
        next if $docs =~ /nginx-ads \Q$path\E\b/;
        next if $verb && $verbs{$verb} && $index =~ /^\| \[[^\]]*`(?:nginx-ads )?$first`[^\]]*\]\(manage\.md\)/m;
        push @missing, $path;
    }
    is_deeply \@missing, [], 'each is documented';
    my ($table) = $index =~ /^\| command \| what it does \|\n(.*?)\n\n/ms;
    my %tops = map { (split / /)[0] => 1 } @paths;
    is_deeply [ grep { $table !~ /`(?:nginx-ads )?$_\b/ } sort keys %tops ], [], 'and is in the table at the top';
};

# ---- the catalog ----------------------------------------------------------------------

my $schema = $json->decode(said($command, 'validate', '--schema'));
my $docs   = slurp('docs/catalog.md');
my $base   = $json->decode(slurp('docs/examples/every-key.json'));

sub type_of { my ($s) = @_; return ref $s->{type} ? $s->{type}[0] : $s->{type} }
sub plain { my ($value) = @_; return ref $value || $value !~ /^-?[\d.]+\z/ ? $json->encode($value) : $value }

# The cell "value" of a key.
sub kind {
    my ($s) = @_;
    my $type = type_of($s);
    return 'one of ' . join ', ', map {"`$_`"} grep {defined} @{ $s->{enum} } if $s->{enum};
    if ($type =~ /^(?:integer|number)\z/) {
        return "$type, $s->{minimum} to $s->{maximum}" if defined $s->{minimum};
        return "$type, more than $s->{exclusiveMinimum}, " . (defined $s->{maximum} ? "at most $s->{maximum}" : "less than $s->{exclusiveMaximum}");
    }
    return 'date' if ($s->{pattern} // '') =~ /^\^\(19/;
    return 'text' . ($s->{maxLength} ? ", up to $s->{maxLength} bytes" : '') if $type eq 'string';
    return $type if $type ne 'array';
    my $text = 'list of ' . kind($s->{items}) =~ s/^one of //r =~ s/^(text|object)/$1s/r;
    my ($least, $most) = @$s{qw(minItems maxItems)};
    return $text . ($least && $most ? "; $least to $most" : $most ? "; up to $most" : $least ? "; at least $least" : '');
}

# "$.a[].b" as a list of keys and [].
sub steps { my ($path) = @_; return $path =~ /(\w+|\[\])/g }

sub schema_at {
    my $s = $schema;
    $s = $_ eq '[]' ? $s->{items} : $s->{properties}{$_} for steps(shift);
    return $s;
}

sub object_at {
    my ($at, $path) = @_;
    $at = $_ eq '[]' ? $at->[0] : $at->{$_} for steps($path);
    return $at;
}

# Every object of the schema, by its path.
my %objects;
my $walk;
$walk = sub {
    my ($path, $s) = @_;
    $walk->("${path}[]", $s->{items}) if $s->{items};
    return unless $s->{properties};
    $objects{$path} = $s;
    $walk->("$path.$_", $s->{properties}{$_}) for keys %{ $s->{properties} };
};
$walk->('$', $schema);

my %sections = $docs =~ /^## [^\n]+\n\n`(\$[^`]*)`\n(.*?)(?=^## |\z)/msg;

subtest 'docs/catalog.md has every object' => sub {
    both_ways([ keys %objects ], [ keys %sections ], 'object');
};

# Cells are JSON with spaces, as people write it.
sub same_json { my ($cell, $value) = @_; return $cell =~ /^`(.*)`\z/ && $json->encode($json->decode($1)) eq $json->encode($value) }

for my $path (sort keys %objects) {
    subtest "docs/catalog.md: the keys of $path" => sub {
        my $section = $sections{$path} // die;
        my ($table) = $section =~ /^\| key \| value \| default \| example \| meaning \|\n\|[-|]+\|\n(.*?)\n\n/ms;
        my %rows = map { my @cells = split / *(?<!\\)\| ?/; ($cells[1] =~ s/`//gr, [ @cells[ 2 .. $#cells ] ]) } split /\n/, $table;
        my $s = $objects{$path};
        both_ways([ (keys %{ $s->{properties} }, ('x') x 5) ], [ keys %rows, 'x' ], 'key');
        my %required = map { $_ => 1 } @{ $s->{required} // [] };
        for my $key (sort keys %{ $s->{properties} }) {
            my ($value, $default, $example, $meaning) = @{ $rows{$key} // next };
            my $is = $s->{properties}{$key};
            is $value, kind($is), "$key: value";
            is $meaning, $is->{description}, 'meaning';
            if    ($required{$key})        { is $default, 'required', 'required' }
            elsif (exists $is->{default})  { ok same_json($default, $is->{default}), "default $default" }
            else                           { is $default, '', 'no default' }
            if    ($is->{examples})        { ok same_json($example, $is->{examples}[0]), "example $example" }
            else                           { is $example, '', 'no example' }
        }
    };
}

subtest 'docs/catalog.md: errors and their messages' => sub {
    my (@files, @wanted);
    for my $path (sort keys %sections) {
        my ($table) = $sections{$path} =~ /^\| wrong \| message \|\n\|[-|]+\|\n(.*?)(?:\n\n|\z)/ms or fail "$path has a table";
        my %seen;
        for my $row (split /\n/, $table) {
            my ($wrong, $message) = $row =~ /^\| `(.*)` \| `(.*)` \|\z/ or fail "a row: $row";
            s/\\\|/|/g for $wrong, $message;
            my $document = $json->decode($json->encode($base));
            my $change   = $json->decode("{$wrong}");
            my $object   = object_at($document, $path);
            @$object{ keys %$change } = values %$change;
            @seen{ keys %$change } = values %$change;
            push @files, spew(scalar(@files) . '.json', $json->encode($document));
            push @wanted, [ $path =~ s/\[\]/[0]/gr, $wrong, $message ];
        }
        is_deeply [ grep { !exists $seen{$_} } sort keys %{ $objects{$path}{properties} } ], [], "$path: each key";
    }
    my $verdicts = $json->decode(said($command, 'validate', '--json', @files));
    cmp_ok scalar @wanted, '>', 90, 'many';
    for my $i (0 .. $#wanted) {
        my ($path, $wrong, $message) = @{ $wanted[$i] };
        my ($first) = grep { index($_->{path}, $path) == 0 } @{ $verdicts->[$i]{errors} };
        is $first->{message}, $message, "$path: $wrong";
    }
};

subtest 'the schema as others read it' => sub {
    my $file = spew('schema.json', $json->encode($schema));
    my @good = (glob('docs/examples/*.json'), 'conf/catalog.json');
    my @bad  = map { spew("bad$_->[0].json", $_->[1]) } [ 1, '{"placements": [{}]}' ], [ 2, '{"campaigns": [{"id": 1, "wieght": 1}]}' ],
        [ 3, '{"placements": [{"id": "a", "select": "cheapest"}]}' ],
        [ 4, '{"campaigns": [{"id": 1, "ad_groups": [{"id": 1, "creatives": [{"id": 1, "type": "image", "click_url": "https://a.example/", "content": {"alt": "a"}}]}]}]}' ];
    my $script = <<'EOP';
import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
for name in sys.argv[2:]:
    faults = list(jsonschema.Draft7Validator(schema).iter_errors(json.load(open(name))))
    print('ok' if not faults else 'bad')
EOP
    open my $out, '-|', 'python3', '-c', $script, $file, @good, @bad or die $!;
    chomp(my @said = <$out>);
    ok close $out, 'it is a schema (python3-jsonschema: scripts/setup test)';
    is_deeply \@said, [ ('ok') x @good, ('bad') x @bad ], 'accepts the examples, and refuses errors';
};

subtest 'docs/examples' => sub {
    my $page = slurp('docs/examples/README.md');
    my @names = map {s{.*/}{}r} glob 'docs/examples/*.json';
    is_deeply [ sort $page =~ /^## (\S+\.json)$/mg ], [ sort @names ], 'each is on the page';
    for my $name (@names) {
        like qx{$command validate docs/examples/$name 2>&1}, qr/: ok$/m, "$name is valid";
        my ($section) = $page =~ /^## \Q$name\E\n(.*?)(?=^## |\z)/ms;
        my $text = slurp("docs/examples/$name") =~ s/\s+/ /gr;
        for my $excerpt ($section =~ /^```json\n(.*?)^```/msg) {
            my $one = $excerpt =~ s/\s+/ /gr =~ s/ \z//r;
            cmp_ok index($text, $one), '>=', 0, 'has ' . substr $one, 0, 50;
        }
    }
    # every-key.json has every key.
    for my $path (sort keys %objects) {
        my $object = object_at($base, $path);
        my %not    = ('$.campaigns[].ad_groups[].creatives[].content' => { markup => 1 }, '$.campaigns[].ad_groups[].pacing.goal' => { clicks => 1 });
        is_deeply [ grep { !exists $object->{$_} && !$not{$path}{$_} } sort keys %{ $objects{$path}{properties} } ], [], "every-key.json: $path";
    }
};

# ---- configurations -------------------------------------------------------------------

# What the pages name and this machine lacks: files of a temporary folder, and variables and hosts
# unknown to nginx.
sub test_configuration {
    my ($http, $server) = @_;
    for (1 .. 8) {
        my $ngx = AdsTest::Nginx->new(http => $http, server => $server);
        my $said = qx{$ngx->{binary} -t -e stderr -p $ngx->{prefix}/ -c conf/nginx.conf 2>&1};
        if    ($said =~ /unknown "(\w+)" variable/)         { $http = "map '' \$$1 { default ''; }\n$http" }
        elsif ($said =~ /host not found in upstream "(\w+)"/) { $http .= "upstream $1 { server 127.0.0.1:9; }\n" }
        else                                                { return $said =~ /test is successful/ ? '' : $said }
    }
    return 'too much is missing';
}

subtest 'nginx -t takes the configurations of the pages' => sub {
    my $etc = tempdir(CLEANUP => 1);
    chmod 0755, $etc;
    system('cp', 'docs/examples/first.json', "$etc/catalog.json") and die;
    system('cp', 'conf/bots.txt', "$etc/bots.txt") and die;
    rename spew('list', "192.0.2.0/24\n"), "$etc/datacentres.txt" or die $!;
    rename spew('tag.js', "'page-spot'\n"), "$etc/tag.js" or die $!;
    mkdir "$etc/console" or die $!;
    rename spew('index.html', "<!doctype html>\n"), "$etc/console/index.html" or die $!;
    my $secret = write_temp('page-secret', secret_text(1), 0600);
    for my $page ('docs/deploy.md', 'docs/directives.md', 'docs/metrics.md', 'docs/creatives.md') {
        my $number = 0;
        for my $text (slurp($page) =~ /^```nginx\n(.*?)^```/msg) {
            $number++;
            $text =~ s{/etc/nginx-ads/secret}{$secret}g;
            $text =~ s{/etc/nginx-ads|/usr/share/nginx-ads}{$etc}g;
            $text =~ s{\bads_console;}{ads_console $etc/console;}g;
            $text =~ s{/var/lib/nginx-ads|/var/cache/nginx}{%%PREFIX%%/logs}g;
            my $own = join '', grep { !/^\s*(ads_\w+)/ || $text !~ /^\s*$1\b/m } split /(?<=\n)/, http_conf();
            # In the http block, a server or a location.
            my @said = map { test_configuration(@$_) } [ "$own$text", '' ], [ $own, $text ], [ $own, "location /x { $text }" ];
            ok +(grep { $_ eq '' } @said), "$page, number $number" or diag $text, @said;
        }
        cmp_ok $number, '>', 0, "$page has some";
    }
};

done_testing;
