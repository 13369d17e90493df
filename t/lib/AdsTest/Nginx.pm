package AdsTest::Nginx;

=head1 NAME

AdsTest::Nginx - a private nginx as an object

=head1 SYNOPSIS

    use lib 't/lib';
    use Test::More;
    use AdsTest::Nginx;                      # wait_until, free_port

    my $ngx = AdsTest::Nginx->new(workers => 2, server => 'location /x { return 200 "ok"; }');
    $ngx->start;
    is $ngx->get('/x')->{body}, 'ok';
    $ngx->reload;
    $ngx->stop;
    is_deeply [ $ngx->problems ], [], 'clean log, exit and reports';
    done_testing;

=head1 OPTIONS OF new()

=over

=item conf

The configuration text. Directives of the main context that it lacks (daemon,
master_process, worker_processes, error_log, pid, user, env, load_module) and
an events block are added. C<%%PORT%%>, C<%%PREFIX%%> and C<%%PORT_name%%> (a
further free port, see C<< ->port('name') >>) are replaced.

=item main, http, server

Instead of C<conf>: text for these three contexts of a standard configuration.

=item workers

Number of workers (1). 0 means C<master_process off>. A C<worker_processes N;>
in C<conf> wins.

=item daemon

False: nginx is our child and its exit status is known. True: needed by
C<upgrade>, since nginx ignores USR2 and WINCH when it is not a daemon.

=item binary, modules, prefix, port, log_level, keep

The executable (C<TEST_NGINX_BINARY>, or nginx), the modules to load
(C<TEST_NGINX_LOAD_MODULES>), the prefix (a private temporary directory, removed
at the end unless C<keep>), the port (a free one), the level (C<info>).

=item valgrind

Options for valgrind, or 1; default C<TEST_NGINX_USE_VALGRIND>. Makes C<daemon>
and the master process be off.

=back

=head1 METHODS

    start, launch                       launch: does not die; { ready, exit, stderr }
    stop(timeout => s), quit, kill_all  QUIT, then TERM, then KILL; the signal that worked
    reload(conf => ..., wait_old => 1, expect_fail => 0)
    master_pid, worker_pids, old_worker_pids, wait_workers(n)
    kill_worker(signal => 'KILL', pid => ..., respawn => 1)
    keeper_pid, kill_keeper
    upgrade, upgrade_start, upgrade_finish, upgrade_rollback
    error_log(from), log_size, log_tail(lines, from), wait_log(pattern, timeout)
    check_log(allow => [...], from => n), reports, cores, problems(allow => [...])
    url(path), get(path, headers), post(path, body, headers), request(...), connection
    connection_to(pid), each_worker     a connection to that worker; { pid => connection }
    port, port(name), prefix, path(file), write_file(name, text), conf_text

Everything waits for conditions, with a deadline. Nothing is found or killed by
name: only the process started here and its children. Every instance is stopped
when its object goes away, when the test ends or dies, and on INT, TERM and HUP.

C<ADS_TEST_PRELOAD> is LD_PRELOAD for nginx; with it, or with ASAN_OPTIONS or
UBSAN_OPTIONS set, reports are written to private files and show up in
C<reports>. C<ADS_TEST_SLOW> multiplies every deadline (10 under valgrind, 4
with a preload, else 1).

=cut

use strict;
use warnings;

use Carp qw(croak);
use Exporter 'import';
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use POSIX ();
use Scalar::Util qw(weaken);
use Time::HiRes qw(time);

use AdsTest::Conf ();
use AdsTest::Http ();
use AdsTest::Process qw(adopt_orphans alive children listening stopped title spawn wait_until free_port slow status_text);
use AdsTest::Reports ();

our @EXPORT    = qw(wait_until free_port);
our @EXPORT_OK = qw(slow alive);

my %Live;    # address => weak reference, for END

sub new {
    my ($class, %o) = @_;

    my $self = bless {
        workers   => $o{workers} // 1,
        daemon    => $o{daemon} // 0,
        log_level => $o{log_level} // 'info',
        binary    => $o{binary} // AdsTest::Conf::binary(),
        modules   => $o{modules} // [ AdsTest::Conf::modules() ],
        keep      => $o{keep} // $ENV{TEST_NGINX_NO_CLEAN},
        valgrind  => $o{valgrind} // $ENV{TEST_NGINX_USE_VALGRIND},
        timeout   => $o{timeout} // 60,
        port      => $o{port},
        owner     => $$,
        ports     => {},
        statuses  => {},
    }, $class;

    if ($self->{valgrind}) {
        @$self{qw(workers daemon)} = (0, 0);
    }
    if (defined $o{prefix}) {
        $self->{prefix} = $o{prefix};
    }
    else {
        $self->{prefix}     = tempdir('adstest-XXXXXXXX', TMPDIR => 1);
        $self->{own_prefix} = 1;
    }
    make_path(map { $self->path($_) } qw(conf logs html));
    $self->{port} //= free_port();

    $self->set_conf(%o) if grep { defined $o{$_} } qw(conf raw_conf main http server);

    $Live{ 0 + $self } = $self;
    weaken $Live{ 0 + $self };
    return $self;
}

# --- files and configuration ------------------------------------------------

sub prefix { return $_[0]{prefix} }
sub path { return "$_[0]{prefix}/$_[1]" }
sub log_file  { return $_[0]->path('logs/error.log') }
sub pid_file  { return $_[0]->path('logs/nginx.pid') }
sub conf_text { return $_[0]{conf_text} }

sub port {
    my ($self, $name) = @_;
    return $self->{port} unless defined $name;
    return $self->{ports}{$name} //= free_port();
}

sub slurp {
    my ($file, $from) = @_;
    open my $in, '<:raw', $file or return undef;
    seek $in, $from, 0 if $from;
    local $/;
    return scalar <$in>;
}

sub write_file {
    my ($self, $name, $text) = @_;
    my $file = $name =~ m{^/} ? $name : $self->path($name);
    (my $dir = $file) =~ s{/[^/]*$}{};
    make_path($dir);
    open my $out, '>:raw', $file or croak "cannot write $file: $!";
    print {$out} $text;
    close $out or croak "cannot write $file: $!";
    return $file;
}

# Sets and writes the configuration; used by new() and by reload().
sub set_conf {
    my ($self, %o) = @_;
    my $text;

    if (defined $o{raw_conf}) {
        $text = $o{raw_conf};
    }
    else {
        $text = $o{conf} // AdsTest::Conf::standard(%o);
        my %main = (%$self, log_file => $self->log_file, pid_file => $self->pid_file);
        $text = AdsTest::Conf::complete($text, \%main);
    }
    $text =~ s/%%PORT%%/$self->{port}/g;
    $text =~ s/%%PREFIX%%/$self->{prefix}/g;
    $text =~ s/%%PORT_(\w+)%%/$self->port($1)/ge;

    $self->{workers} = 0  if $text =~ /^\s*master_process\s+off\s*;/m;
    $self->{workers} = $1 if $self->{workers} && $text =~ /^\s*worker_processes\s+(\d+)\s*;/m;
    $self->{conf_text} = $text;
    $self->write_file('conf/nginx.conf', $text);
    return;
}

# --- start and stop ---------------------------------------------------------

sub start {
    my ($self) = @_;
    my $result = $self->launch;
    return $self if $result->{ready};
    my $why = defined $result->{exit} ? status_text($result->{exit}) : 'not ready in time';
    $self->kill_all;
    croak "nginx did not start ($why)\n$result->{stderr}" . $self->log_tail(20);
}

# Starts nginx and waits until it either serves or has exited.
sub launch {
    my ($self) = @_;
    croak 'nginx is already running' if $self->{running};

    unlink $self->pid_file, $self->path('logs/stderr.log');
    delete @$self{qw(master exit_status stopped_by gone_early)};
    $self->{started_at} = time;
    $self->{reports} //= AdsTest::Reports->new($self->path('logs/reports'));

    my @command = ($self->{binary}, '-e', $self->log_file);
    push @command, '-p', "$self->{prefix}/", '-c', $self->path('conf/nginx.conf');
    unshift @command, $self->{reports}->valgrind_command($self->{valgrind}) if $self->{valgrind};
    my $preload = $ENV{ADS_TEST_PRELOAD} // $ENV{TEST_NGINX_LD_PRELOAD};
    my %env = $self->{reports}->environment;
    $env{LD_PRELOAD} = join ' ', grep { length } $preload, $ENV{LD_PRELOAD} // '' if defined $preload;

    adopt_orphans() if $self->{daemon};
    $self->{running} = 1;
    $self->{spawned} = spawn(\@command, \%env, $self->path('logs/stderr.log'));

    my %result = (ready => 0, exit => undef);
    wait_until {
        my $here = alive($self->{spawned}, $self->{statuses});
        if (!$here && (!$self->{daemon} || $self->{statuses}{ $self->{spawned} } != 0)) {
            $result{exit} = $self->{exit_status} = $self->{statuses}{ $self->{spawned} };
            return 1;
        }
        return $result{ready} = $self->_is_ready;
    } $self->{timeout};
    $result{stderr} = slurp($self->path('logs/stderr.log')) // '';
    $self->{running} = 0 if defined $result{exit};
    return \%result;
}

sub _is_ready {
    my ($self) = @_;
    my $pid = $self->_read_pid or return 0;
    $self->{master} = $pid;
    return 0 if $self->worker_pids < ($self->{workers} || 1);
    return 1 if listening($self->{port});
    return $self->{conf_text} !~ /\blisten\s+[^;]*\b$self->{port}\b/;
}

sub _read_pid {
    my ($self, $file) = @_;
    my $text = slurp($file // $self->pid_file) // return;
    return unless $text =~ /^(\d+)\s*$/;
    return alive($1, $self->{statuses}) ? $1 : undef;
}

sub is_running {
    my ($self) = @_;
    return $self->{running} && $self->{master} && alive($self->{master}, $self->{statuses});
}

# Graceful first, forced when that takes too long. Returns the signal after
# which everything was gone, or "gone" when nginx was not there any more.
sub stop {
    my ($self, %o) = @_;
    return $self->{stopped_by} // 'gone' unless $self->{running};

    my $master = $self->{master} // $self->{spawned};
    my @all = grep { alive($_, $self->{statuses}) } $master, children($master), @{ $self->{extra_pids} // [] };
    my $result = 'gone';
    $self->{gone_early} = 1 unless alive($master, $self->{statuses});

    for my $step ([ QUIT => $o{timeout} // $self->{timeout} ], [ TERM => 5 ], [ KILL => 5 ]) {
        my ($signal, $timeout) = @$step;
        @all = grep { alive($_, $self->{statuses}) } @all or last;
        $result = $signal;
        my @targets = $signal ne 'KILL' && alive($master, $self->{statuses}) ? $master : @all;
        kill $signal, @targets;
        wait_until { !grep { alive($_, $self->{statuses}) } @all } $timeout;
    }
    $self->{running}     = 0;
    $self->{stopped_by}  = $result;
    $self->{exit_status} = $self->{statuses}{$master};
    return $result;
}

sub quit {
    my ($self, %o) = @_;
    my $by = $self->stop(%o);
    croak "nginx did not leave on QUIT ($by)" unless $by eq 'QUIT';
    return 1;
}

# Without grace: what a crash of the whole server looks like.
sub kill_all {
    my ($self) = @_;
    return unless $self->{running};
    my $master = $self->{master} // $self->{spawned};
    # A master that stands still starts no worker that would keep the port.
    kill STOP => $master;
    wait_until { !alive($master, $self->{statuses}) || stopped($master) } 20, 'the master to stop';
    my @all = ($master, children($master));
    kill KILL => @all;
    wait_until { !grep { alive($_, $self->{statuses}) } @all } 60, 'all processes to die';
    @$self{qw(running stopped_by)} = (0, 'KILL');
    unlink $self->pid_file;
    return;
}

# --- processes --------------------------------------------------------------

sub master_pid { return $_[0]{master} }

sub _workers {
    my ($self, $master) = @_;
    return grep { title($_) =~ /^nginx: worker process/ } children($master);
}

# The workers that serve; without a master process, the process itself.
sub worker_pids {
    my ($self) = @_;
    my $master = $self->{master} or return;
    return alive($master, $self->{statuses}) ? $master : () unless $self->{workers};
    return grep { title($_) !~ /shutting down/ } $self->_workers($master);
}

sub old_worker_pids {
    my ($self) = @_;
    return grep { title($_) =~ /shutting down/ } $self->_workers($self->{master});
}

# The process that does what answers no request; without a master process, the process itself.
sub keeper_pid {
    my ($self) = @_;
    my $master = $self->{master} or return;
    return $master unless $self->{workers};
    my ($pid) = grep { title($_) =~ /^nginx: cache manager process/ } children($master);
    return $pid;
}

# Signals the keeper and waits until it is gone and replaced.
sub kill_keeper {
    my ($self) = @_;
    my $pid = wait_until { $self->keeper_pid } $self->{timeout}, 'a keeper';
    kill KILL => $pid;
    wait_until { my $new = $self->keeper_pid; $new && $new != $pid } $self->{timeout}, 'the next keeper';
    return $pid;
}

sub wait_workers {
    my ($self, $count) = @_;
    $count //= $self->{workers} || 1;
    wait_until { $self->worker_pids == $count } $self->{timeout}, "$count workers";
    return $self->worker_pids;
}

# Signals one worker and waits until it is gone and, by default, replaced.
sub kill_worker {
    my ($self, %o) = @_;
    my $pid = $o{pid} // ($self->worker_pids)[0] // croak 'there is no worker';
    kill $o{signal} // 'KILL', $pid;
    wait_until { !alive($pid) } $self->{timeout}, "worker $pid to go";
    $self->wait_workers if $o{respawn} // 1;
    return $pid;
}

# HUP, then waits until the new workers run and the old ones have stopped
# accepting; with wait_old, until they are gone. Other options are a new
# configuration as for new(). Dies when nginx refuses the configuration;
# with expect_fail returns the log line with which it does.
sub reload {
    my ($self, %o) = @_;
    my $expect_fail = delete $o{expect_fail};
    my $wait_old    = delete $o{wait_old} // 0;
    croak 'reload needs a master process' unless $self->{workers};

    my %old = map { $_ => 1 } $self->_workers($self->{master});
    $self->set_conf(%o) if %o;
    my $from = $self->log_size;
    my $refusal;
    kill HUP => $self->{master} or croak "cannot signal $self->{master}: $!";

    my $done = wait_until {
        ($refusal) = grep { /^\S+ \S+ \[emerg\] / } split /\n/, $self->error_log($from);
        return 1 if $refusal || !$self->is_running;
        my @new = grep { !$old{$_} } $self->worker_pids;
        return 0 if @new < $self->{workers};
        my @left = grep { alive($_) && ($wait_old || title($_) !~ /shutting down/) } keys %old;
        return !@left;
    } $self->{timeout};

    return $refusal if $expect_fail && $refusal;
    croak "reload failed: $refusal" if $refusal;
    croak 'the reload should have been refused' if $expect_fail;
    croak 'nginx is gone after HUP' unless $self->is_running;
    croak 'reload did not finish in time: ' . join ', ', map { "$_ " . title($_) } $self->_workers($self->{master})
        unless $done;
    return 1;
}

# USR2: the new master runs beside the old one, both serve. Returns its pid.
sub upgrade_start {
    my ($self) = @_;
    croak 'upgrade needs daemon => 1 and a master process' unless $self->{daemon} && $self->{workers};
    my $old = $self->{master};
    kill USR2 => $old or croak "cannot signal $old: $!";

    my $new;
    wait_until {
        $new = $self->_read_pid;
        return $new && $new != $old && $self->_workers($new) >= $self->{workers};
    } $self->{timeout}, 'the new master and its workers';
    $self->{old_master} = $old;
    $self->{extra_pids} = [ $old, children($old) ];
    return $self->{master} = $new;
}

# WINCH and QUIT to the old master. Returns the pid of the new one.
sub upgrade_finish {
    my ($self) = @_;
    my $old = $self->{old_master} // croak 'no upgrade is under way';
    kill WINCH => $old;
    wait_until { !$self->_workers($old) } $self->{timeout}, 'the old workers to go';
    kill QUIT => $old;
    wait_until { !alive($old, $self->{statuses}) } $self->{timeout}, 'the old master to go';
    delete @$self{qw(old_master extra_pids)};
    return $self->{master};
}

# QUIT to the new master: the old one serves alone again.
sub upgrade_rollback {
    my ($self) = @_;
    my $old = $self->{old_master} // croak 'no upgrade is under way';
    my $new = $self->{master};
    kill QUIT => $new;
    wait_until { !alive($new) && ($self->_read_pid // 0) == $old } $self->{timeout}, 'the new master to go';
    $self->{master} = $old;
    delete @$self{qw(old_master extra_pids)};
    return $old;
}

sub upgrade {
    my ($self) = @_;
    $self->upgrade_start;
    return $self->upgrade_finish;
}

# --- logs and verdicts ------------------------------------------------------

sub log_size { return -s $_[0]->log_file // 0 }

sub error_log {
    my ($self, $from) = @_;
    return slurp($self->log_file, $from) // '';
}

# The last lines, without messages of the debug level, as one text.
sub log_tail {
    my ($self, $lines, $from) = @_;
    my $debug = 0;
    my @lines;
    for my $line (split /\n/, $self->error_log($from)) {
        $debug = $1 eq 'debug' if $line =~ m{^\d+/\d+/\d+ [\d:]+ \[(\w+)\]};
        push @lines, $line if !$debug || $ENV{TEST_NGINX_VERBOSE};
    }
    @lines = @lines[ -$lines .. -1 ] if @lines > $lines;
    return join '', map { "$_\n" } @lines;
}

sub wait_log {
    my ($self, $pattern, $timeout) = @_;
    $pattern = quotemeta $pattern unless ref $pattern;
    return wait_until { $self->error_log =~ /$pattern/ } $timeout // 60, "\"$pattern\" in the error log";
}

# The lines that must not be there. allow: strings or regexes of expected ones.
sub check_log {
    my ($self, %o) = @_;
    return AdsTest::Reports::bad_lines($self->error_log($o{from}), $o{allow});
}

sub reports {
    my ($self) = @_;
    return $self->{reports} ? $self->{reports}->found($self->path('logs/stderr.log')) : ();
}

sub cores {
    my ($self) = @_;
    my $since = int($self->{started_at} // return);
    my @files = map { glob "$_/core $_/core.[0-9]* $_/vgcore.*" } $self->{prefix}, '.';
    return grep { -f $_ && (stat _)[9] >= $since } @files;
}

# Everything that makes a run not clean, as texts. To be called after stop.
sub problems {
    my ($self, %o) = @_;
    my @problems = $self->check_log(%o);
    push @problems, $self->reports;
    push @problems, map { "core file $_" } $self->cores;
    my $status = $self->{exit_status};
    push @problems, 'nginx ended: ' . status_text($status) if $status && ($self->{stopped_by} // '') ne 'KILL';
    push @problems, 'nginx was gone before it was told to stop' if $self->{gone_early};
    push @problems, "nginx did not leave on QUIT but on $self->{stopped_by}"
        if ($self->{stopped_by} // '') =~ /^(?:TERM|KILL)$/;
    return @problems;
}

# --- requests ---------------------------------------------------------------

sub url { return "http://127.0.0.1:$_[0]{port}" . ($_[1] // '/') }

sub connection {
    my ($self, %o) = @_;
    return AdsTest::Http->new(port => $self->{port}, timeout => 30 * slow(), %o);
}

# Which worker accepts is the kernel's choice, and differs between versions of nginx: the
# others stand still until this one has answered.
sub connection_to {
    my ($self, $pid, %o) = @_;
    my @others = grep { $_ != $pid } $self->worker_pids;
    kill STOP => @others;
    my $conn = eval {
        wait_until { !grep { alive($_) && !stopped($_) } @others } 20, 'the other workers to stop';
        my $conn = $self->connection(%o);
        $conn->request('GET', '/');
        $conn;
    };
    my $error = $@;
    kill CONT => @others;
    croak "worker $pid: $error" unless $conn;
    return $conn;
}

sub each_worker {
    my ($self, %o) = @_;
    return { map { $_ => $self->connection_to($_, %o) } $self->worker_pids };
}

# One request on a connection of its own; returns when the server has closed
# it, so that the log phase is over.
sub request {
    my ($self, $method, $path, $headers, $body) = @_;
    my $conn  = $self->connection;
    my @pairs = ref $headers eq 'ARRAY' ? @$headers : %{ $headers // {} };
    push @pairs, Connection => 'close' unless grep { defined && lc eq 'connection' } @pairs;
    my $res = $conn->request($method, $path, \@pairs, $body);
    $conn->close;
    AdsTest::Http::wait_closed($self->{port}, $conn->client_port, 1);
    return $res;
}

sub get  { my ($self, $path, $headers) = @_; return $self->request('GET', $path, $headers) }
sub post { my ($self, $path, $body, $headers) = @_; return $self->request('POST', $path, $headers, $body // '') }

# --- the end ----------------------------------------------------------------

sub _finish {
    my ($self) = @_;
    return if $self->{finished}++ || $self->{owner} != $$;
    local ($?, $@, $!);
    delete $Live{ 0 + $self };
    if ($self->{keep} && $self->{running}) {
        print {*STDERR} "# kept: $self->{prefix}, port $self->{port}, pid " . ($self->{master} // '-') . "\n";
        return;
    }
    $self->stop;
    remove_tree($self->{prefix}) if $self->{own_prefix} && !$self->{keep};
    return;
}

sub DESTROY { $_[0]->_finish }

END {
    $_->_finish for grep { defined } values %Live;
}

for my $name (qw(INT TERM HUP)) {
    $SIG{$name} //= sub { exit 128 + POSIX->can("SIG$name")->() };
}

1;
