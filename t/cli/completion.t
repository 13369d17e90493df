# nginx-ads completion and man are generated from the command line definition.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use Test::More;

my $command = $ENV{ADS_COMMAND} || 'build/nginx-ads';
-x $command or die "$command is not built: run make cli\n";
$command = abs_path($command);
my $dir = tempdir(CLEANUP => 1);

is system("$command completion bash > $dir/bash"), 0, 'a script for bash';
is system('bash', '-n', "$dir/bash"), 0, 'that bash can read';

# The completions that bash offers for the last of these words.
sub offered {
    my @words = @_;
    my $last = $#words;
    return join ' ', split ' ', qx{bash -c 'source $dir/bash; COMP_WORDS=(@words); COMP_CWORD=$last; _nginx_ads; echo "\${COMPREPLY[*]}"'};
}

is offered('nginx-ads', 'camp'), 'campaign', 'a command';
is offered('nginx-ads', 'campaign', 'pa'), 'pause', 'a command of a command';
is offered('nginx-ads', 'ad-group', 'update', '12', '--cp'), '--cpm --cpc --cpa', 'options, behind arguments';
is offered('nginx-ads', 'campaign', 'list', '--da'), '--database', 'only those that it has';

is offered('nginx-ads', 'report', '--format', ''), 'table csv json', 'values of an option';
is offered('nginx-ads', 'report', '--by', 'p'), 'placement', 'that begin so';
is offered('nginx-ads', 'ad-group', 'update', '12', '--priority', 's'), 'sponsorship standard', 'names of the catalog';
is offered('nginx-ads', 'campaign', 'list', '--status', 'a'), 'active archived', 'statuses';
is offered('nginx-ads', 'report', '--format', 'csv', '--cam'), '--campaign', 'and behind the value options again';
is offered('nginx-ads', 'help', 'camp'), 'campaign', 'commands to be helped with';
is offered('nginx-ads', 'help', 'campaign', 'li'), 'list', 'and those below';

my $zsh = qx{$command completion zsh};
is $?, 0, 'a script for zsh';
like $zsh, qr/\A#compdef nginx-ads\n/, 'that zsh finds';
like $zsh, qr/^ +" campaign pause"\) known=".*--dry-run/m, 'with each command';

# Stands in for zsh: the words before the cursor, and compadd for the completions.
SKIP: {
    my ($shell) = grep { -x } map { "$_/zsh" } split /:/, $ENV{PATH};
    skip 'no zsh on this machine', 5 unless $shell;
    open my $to, '>', "$dir/_nginx-ads" or die $!;
    print $to $zsh;
    close $to;
    is system($shell, '-n', "$dir/_nginx-ads"), 0, 'that zsh can read';
    my $words = sub {
        my @words = @_;
        return ' ' . join(' ', split ' ', qx{$shell -f -c 'compdef() { }; compadd() { print -- \$list }; fpath=($dir); autoload -Uz _nginx-ads; words=(@words); CURRENT=\$#words; _nginx-ads'}) . ' ';
    };
    like $words->('nginx-ads', 'camp'), qr/ campaign .* dispatch /, 'commands';
    like $words->('nginx-ads', 'campaign', 'pa'), qr/ pause /, 'commands of a command';
    like $words->('nginx-ads', 'dispatch', 'run', '--parallel', '5', '--'), qr/ --redirects /, 'options, behind arguments';
    is system($shell, '-f', '-c', "compdef() { [[ \$1 == _nginx_ads ]] }; source $dir/_nginx-ads"), 0, 'it may be sourced';
}

my $man = qx{$command man};
is $?, 0, 'a manual page';
like $man, qr/\A\.TH NGINX\\-ADS 1 /, 'in troff';
like $man, qr/^\.SS "nginx\\-ads campaign create"\nMake a campaign\.\n/m, 'with each command';
unlike $man, qr/^\.(?!TH|SH|SS|TP|B |PP|nf|fi)/m, 'and no other requests';

# ---- help ----

# Every command, as the script for bash lists them.
my @paths = grep { length } split /\|/, (slurp("$dir/bash") =~ /paths="\|([^"]*)"/)[0];
cmp_ok scalar @paths, '>', 60, 'many commands';
my @without = grep { (my $help = qx{$command $_ --help}) !~ /^Exit codes: 0 success, 1 .*, 2 .*,\n3 [^\n]*\.\n\z/m || $? } @paths;
is_deeply \@without, [], 'the help of each ends with the exit codes';
like qx{$command --help}, qr/^Exit codes:\n  0  /m, 'that of all says more of them';

is qx{$command help campaign list}, qx{$command campaign list --help}, 'help COMMAND';
is qx{$command help}, qx{$command --help}, 'help';
is_deeply [ grep { qx{$command $_ --help} !~ /^  --json /m } grep { my $at = $_; !grep { /^\Q$at\E / } @paths } @paths ], [], 'every command has --json';

# ---- messages as JSON ----

for my $case (
    [ 2, qr/^\{"error":"must be|^\{"error":"--by: must be one/, 'report --by week --json' ],
    [ 2, qr/^\{"error":"\\"nginx-ads campaign\\" requires one of the commands/, 'campaign --json' ],
    [ 2, qr/^\{"error":"there is no command/, 'campain list --json' ],
    [ 3, qr/^\{"error":"cannot reach PostgreSQL/, 'campaign list --json --db host=/nowhere' ],
    )
{
    my ($code, $expected, $line) = @$case;
    my $said = qx{$command $line 2>&1 >$dir/out};
    is $? >> 8, $code, "$line: exit code";
    like $said, $expected, 'an object';
    unlike $said, qr/\n./, 'in one line';
}

sub slurp { my ($path) = @_; open my $in, '<', $path or die "$path: $!"; local $/; return <$in> }

system("$command completion fish > $dir/out 2>&1");
is $? >> 8, 2, 'a shell that is not known';

done_testing;
