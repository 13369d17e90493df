# nginx-ads completion and man: made of the command line itself.

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

# What bash would offer for the last of these words.
sub offered {
    my @words = @_;
    my $last = $#words;
    return join ' ', split ' ', qx{bash -c 'source $dir/bash; COMP_WORDS=(@words); COMP_CWORD=$last; _nginx_ads; echo "\${COMPREPLY[*]}"'};
}

is offered('nginx-ads', 'camp'), 'campaign', 'a command';
is offered('nginx-ads', 'campaign', 'pa'), 'pause', 'a command of a command';
is offered('nginx-ads', 'ad-group', 'update', '12', '--pri'), '--priority --price-model --price-cents', 'options, behind arguments';
is offered('nginx-ads', 'campaign', 'list', '--da'), '--database', 'only those that it has';

my $zsh = qx{$command completion zsh};
is $?, 0, 'a script for zsh';
like $zsh, qr/\A#compdef nginx-ads\n/, 'that zsh finds';
like $zsh, qr/^ +" campaign pause"\) known=".*--dry-run/m, 'with each command';

my $man = qx{$command man};
is $?, 0, 'a manual page';
like $man, qr/\A\.TH NGINX\\-ADS 1 /, 'in troff';
like $man, qr/^\.SS "nginx\\-ads campaign create"\nMake a campaign\.\n/m, 'with each command';
unlike $man, qr/^\.(?!TH|SH|SS|TP|B |PP|nf|fi)/m, 'and no other requests';

system("$command completion fish > $dir/out 2>&1");
is $? >> 8, 2, 'a shell that is not known';

done_testing;
