package AdsTest::Postgres;

=head1 NAME

AdsTest::Postgres - a private PostgreSQL as an object

=head1 SYNOPSIS

    use lib 't/lib';
    use Test::More;
    use AdsTest::Postgres;

    my $pg = AdsTest::Postgres->new;          # or skips the whole file
    $pg->migrate;
    is $pg->value('SELECT count(*) FROM ads.campaigns'), 0;
    is $pg->error('SELECT 1/0')->{state}, '22012';
    done_testing;

=head1 OPTIONS OF new()

    fast      => 1        no fsync (default); 0 for tests of durability
    password  => 1        TCP asks for a password
    settings  => { max_connections => 20 }
    dir       => DIR      a folder of scripts/services that is in use: it is neither
                          started nor stopped here, so that test files can share it
    keep      => 1        leave the folder (TEST_NGINX_NO_CLEAN)

=head1 METHODS

    start, stop, restart, crash         crash: SIGQUIT, as a power cut sees it
    sigstop, sigcont                    the server and all its processes
    pid, processes
    conninfo(tcp => 1, user => .., dbname => ..)
    dir, port, log
    migrate                             makes the schema, by the command
    database(name)                      another database of this server, as an object:
                                        new and empty, or a copy of template => ..
    query(sql)                          rows as array references; undef for NULL; dies with the error
    row(sql), value(sql), column(sql)
    run(sql)                            several statements; dies with the error
    error(sql)                          { state, message, text } or undef if all is well
    session(user => ..)                 a connection that stays open, see below
    kill_backends(where)                SQL condition on pg_stat_activity; how many
    quote(text)                         an SQL literal; NULL for undef
    ingest_sql(events ...)              a call of ads.ingest; an event is what event(..) returns
    event(type => 'click', serve => 5)  an event with defaults, its id made of issued, serve and type

All of query, run, error take user => 'name' and the like after the SQL; they go
through psql, each on a connection of its own.

A session has C<query>, C<row>, C<value>, C<run>, C<error> too, and

    send(sql)                           does not wait
    result                              waits: rows, or dies with the error
    finished                            true when result would not wait
    notified                            names of channels that were notified so far
    close

=cut

use strict;
use warnings;

use Carp qw(croak);
use Cwd ();
use Exporter 'import';
use File::Basename qw(dirname);
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use IO::Select ();
use IPC::Open3 qw(open3);
use POSIX ();
use Scalar::Util qw(weaken);
use Test::More ();
use Time::HiRes ();

use AdsTest::Process qw(alive children free_port slow wait_until);

our @EXPORT = qw(wait_until);

my $Root = Cwd::abs_path(dirname(__FILE__) . '/../../..');
my %Live;    # address => weak reference, for END

sub available {
    return scalar grep { -x "$_/initdb" } $ENV{ADS_POSTGRES_BIN} // (), glob('/usr/lib/postgresql/*/bin'),
        split /:/, $ENV{PATH};
}

sub new {
    my ($class, %o) = @_;
    Test::More::plan(skip_all => 'no PostgreSQL server on this machine') unless available();

    my $self = bless {
        fast     => $o{fast} // 1,
        password => $o{password},
        settings => $o{settings} // {},
        dir      => $o{dir},
        shared   => defined $o{dir},
        keep     => $o{keep} // $ENV{TEST_NGINX_NO_CLEAN},
        dbname   => 'ads',
        owner    => $$,
    }, $class;

    if ($self->{shared}) {
        $self->_read_env;
        return $self;
    }
    $self->{dir}  = tempdir('adspg-XXXXXXXX', TMPDIR => 1);
    $self->{port} = free_port();
    $Live{ 0 + $self } = $self;
    weaken $Live{ 0 + $self };
    return $self->start;
}

# --- the server ---------------------------------------------------------------

sub _services {
    my ($self, @arguments) = @_;
    my $pid = open3(my $in, my $out, undef, "$Root/scripts/services", @arguments);
    close $in;
    my $text = do { local $/; <$out> }
        // '';
    waitpid $pid, 0;
    croak "scripts/services @arguments: $text" if $?;
    return $text;
}

sub start {
    my ($self, %o) = @_;
    my %settings = (%{ $self->{settings} }, %o);
    my @options  = ('--port', $self->{port});
    push @options, '--fast'     if $self->{fast};
    push @options, '--password' if $self->{password};
    push @options, map { ('--set', "$_=$settings{$_}") } sort keys %settings;
    $self->_services('start', $self->{dir}, @options);
    $self->{running} = 1;
    $self->_read_env;
    return $self;
}

sub stop {
    my ($self) = @_;
    return unless $self->{running};
    $self->_services('stop', $self->{dir});
    $self->{running} = 0;
    return;
}

sub restart {
    my ($self, %o) = @_;
    $self->stop;
    return $self->start(%o);
}

sub crash {
    my ($self) = @_;
    my @all = $self->processes;
    kill QUIT => $self->pid;
    wait_until { !grep { alive($_) } @all } 20, 'PostgreSQL to end';
    $self->{running} = 0;
    return;
}

sub _read_env {
    my ($self) = @_;
    my $file = "$self->{dir}/services.env";
    open my $in, '<', $file or croak "cannot read $file: $!";
    while (my $line = <$in>) {
        next unless $line =~ /^(\w+)="?([^"\n]*)"?$/;
        $self->{env}{$1} = $2;
    }
    $self->{port} = $self->{env}{PGPORT};
    return;
}

sub dir  { return $_[0]{dir} }
sub port { return $_[0]{port} }

sub log {
    my ($self) = @_;
    open my $in, '<', "$self->{dir}/postgres/server.log" or return '';
    local $/;
    return <$in> // '';
}

sub pid {
    my ($self) = @_;
    my $file = "$self->{dir}/postgres/postmaster.pid";
    open my $in, '<', $file or croak "PostgreSQL does not run: $file: $!";
    my $line = <$in> // '';
    return $line =~ /^(\d+)$/ ? $1 : croak "no pid in $file";
}

sub processes {
    my ($self) = @_;
    my $pid = $self->pid;
    return ($pid, children($pid));
}

# The parent first: it must not start others behind our back.
sub sigstop {
    my ($self) = @_;
    my $pid = $self->pid;
    kill STOP => $pid;
    kill STOP => children($pid);
    return;
}

sub sigcont {
    my ($self) = @_;
    my $pid = $self->pid;
    kill CONT => children($pid), $pid;
    return;
}

sub conninfo {
    my ($self, %o) = @_;
    my %parts = $o{tcp} ? (host => 'localhost', hostaddr => '127.0.0.1') : (host => $self->{dir});
    %parts = (
        %parts,
        port   => $self->{port},
        user   => $o{user} // $self->{env}{PGUSER},
        dbname => $o{dbname} // $self->{dbname}
    );
    $parts{passfile} = "$self->{dir}/pgpass" if $self->{password} && $o{tcp};
    $parts{options}  = "'$o{options}'"       if $o{options};
    return join ' ', map { "$_=$parts{$_}" } sort keys %parts;
}

# --- databases and the schema --------------------------------------------------------

# Shares the server; it must not outlive the object it came from.
sub database {
    my ($self, $name, %o) = @_;
    my $template = $o{template} // 'template0';
    $self->run("CREATE DATABASE $name TEMPLATE $template", dbname => 'postgres');
    return bless { %$self, dbname => $name, shared => 1, running => 0, parent => $self }, ref $self;
}

sub migrate {
    my ($self, %o) = @_;
    my $command = $ENV{ADS_COMMAND} || "$Root/build/nginx-ads";
    my $pid = open3(my $in, my $out, undef, $command, 'migrate', '--database', $self->conninfo(%o));
    close $in;
    my $text = do { local $/; <$out> }
        // '';
    waitpid $pid, 0;
    croak "$command migrate: $text" if $?;
    return $text;
}

# --- SQL ------------------------------------------------------------------------

my ($Field, $Record, $Null) = ("\x1f", "\x1e", "\x1d");

my @Psql = (
    'psql', '-XqAt', '-F', $Field, '-R', $Record, '-P', "null=$Null",
    '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose', '-v', 'SHOW_CONTEXT=never'
);

# split() makes nothing of an empty string, not an empty part.
sub _parts {
    my ($separator, $text) = @_;
    return $text eq '' ? ('') : split /$separator/, $text, -1;
}

sub _rows {
    my ($text) = @_;
    return [] if $text eq '';
    $text =~ s/\n\z//;
    return [ map { [ map { $_ eq $Null ? undef : $_ } _parts($Field, $_) ] } _parts($Record, $text) ];
}

# An error as psql prints it: "psql:<stdin>:3: ERROR:  23514: text". The
# sqlstate of a lost connection is not known.
sub _error {
    my ($text) = @_;
    my ($state, $message) = $text =~ /(?:ERROR|FATAL|PANIC):\s+([0-9A-Z]{5}): (.*)/;
    return { state => $state // '', message => $message // $text, text => $text };
}

sub _psql {
    my ($self, $sql, %o) = @_;
    # Through a file: a pipe for each of three streams could fill up.
    my $input = File::Temp->new(UNLINK => 1);
    binmode $input;
    utf8::encode($sql) if utf8::is_utf8($sql);
    print {$input} $sql;
    close $input;
    my $errors = File::Temp->new(UNLINK => 1);
    open my $err, '>', $errors->filename or croak "$!";
    local $ENV{PGOPTIONS} = $o{pgoptions} // '';
    my $pid = open3(my $in, my $out, '>&' . fileno $err, @Psql, '-f', $input->filename, '-d', $self->conninfo(%o));
    close $in;
    binmode $out;
    my $text = do { local $/; <$out> }
        // '';
    waitpid $pid, 0;
    my $status = $?;
    open my $read, '<:raw', $errors->filename or croak "$!";
    my $complaint = do { local $/; <$read> }
        // '';
    return ($text, $status ? _error($complaint) : undef);
}

sub query {
    my ($self, $sql, %o) = @_;
    my ($text, $error) = $self->_psql($sql, %o);
    croak "$error->{text}in: " . substr($sql, 0, 2000) if $error;
    return wantarray ? @{ _rows($text) } : _rows($text);
}

sub run {
    my ($self, $sql, %o) = @_;
    my (undef, $error) = $self->_psql($sql, %o);
    croak "$error->{text}in: " . substr($sql, 0, 2000) if $error;
    return;
}

sub error {
    my ($self, $sql, %o) = @_;
    return ($self->_psql($sql, %o))[1];
}

sub row    { my $self = shift; return @{ scalar($self->query(@_))->[0] // [] } }
sub value  { my $self = shift; return (scalar($self->query(@_))->[0] // [])->[0] }
sub column { my $self = shift; return map { $_->[0] } $self->query(@_) }

sub quote {
    my ($self, $text) = @_;
    return 'NULL' unless defined $text;
    return q(') . $text =~ s{'}{''}gr . q(');
}

my @Types = qw(serve impression viewable click conversion);
my @Event = (
    [ id       => 'uuid' ], [ type      => 'int2' ], [ at       => 'int8' ], [ issued   => 'int8' ],
    [ serve    => 'int8' ], [ campaign  => 'int8' ], [ ad_group => 'int8' ], [ creative => 'int8' ],
    [ experiment => 'int8' ], [ price   => 'int8' ], [ node     => 'int8' ], [ device   => 'int2' ],
    [ invalid  => 'int2' ], [ consent   => 'bool' ], [ placement => 'text' ], [ country => 'text' ],
    [ session  => 'text' ], [ user      => 'text' ], [ metadata => 'text' ]
);

# As core/event.cpp packs it.
sub event_id {
    my ($issued, $serve, $type) = @_;
    no warnings 'portable';
    return sprintf '%012x70%x%x%016x', $issued, $type, $serve >> 60, $serve & 0x0fff_ffff_ffff_ffff | 1 << 63;
}

sub event {
    my ($self, %o) = @_;
    my %types = map { $Types[$_] => $_ } 0 .. $#Types;
    my %event = (
        type     => 0,  at        => int(Time::HiRes::time() * 1000), serve => 1,
        campaign => 7,  ad_group  => 12,   creative => 31,   experiment => 0,    price => 0, node => 1, device => 0,
        invalid  => 0,  consent   => 't',  placement => 'home-top', country => 'US', session => 's1', user => '',
        metadata => '{}', %o
    );
    $event{type} = $types{ $event{type} } // $event{type} if defined $event{type};
    $event{issued} //= $event{at};
    $event{id} //= event_id(@event{qw(issued serve type)});
    return \%event;
}

# Serve ids are 64 bits; PostgreSQL has them signed.
sub ingest_sql {
    my ($self, @events) = @_;
    my @arrays;
    for my $column (@Event) {
        my ($name, $type) = @$column;
        my @values = map { $_->{$name} } @events;
        @values = map { defined && /^\d+$/ ? unpack 'q', pack 'Q', $_ : $_ } @values if $name eq 'serve';
        push @arrays, 'ARRAY[' . join(',', map { $self->quote($_) } @values) . "]::$type\[]";
    }
    return 'SELECT inserted, duplicate FROM ads.ingest(' . join(', ', @arrays) . ')';
}

sub kill_backends {
    my ($self, $where) = @_;
    $where //= 'true';
    return $self->value(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND ($where)"
    );
}

sub session {
    my ($self, %o) = @_;
    return AdsTest::Postgres::Session->new($self->conninfo(%o));
}

# --- the end ----------------------------------------------------------------------

sub _finish {
    my ($self) = @_;
    return if $self->{shared} || $self->{finished}++ || $self->{owner} != $$;
    local ($?, $@, $!);
    delete $Live{ 0 + $self };
    if ($self->{keep} && $self->{running}) {
        print {*STDERR} "# kept: $self->{dir}, port $self->{port}\n";
        return;
    }
    eval { $self->_services('stop', $self->{dir}); 1 } or print {*STDERR} "# $@";
    remove_tree($self->{dir}) unless $self->{keep};
    return;
}

sub DESTROY { $_[0]->_finish }

END {
    $_->_finish for grep { defined } values %Live;
}

for my $name (qw(INT TERM HUP)) {
    $SIG{$name} //= sub { exit 128 + POSIX->can("SIG$name")->() };
}

package AdsTest::Postgres::Session;

use strict;
use warnings;

use Carp qw(croak);
use IPC::Open3 qw(open3);

sub new {
    my ($class, $conninfo) = @_;
    my $self = bless { buffer => '', serial => 0, pending => 0, notified => [] }, $class;
    my @command = (@Psql, '-v', 'ON_ERROR_STOP=0', '-d', $conninfo);
    $self->{pid} = open3($self->{in}, $self->{out}, undef, @command);
    $self->{in}->autoflush(1);
    $self->query('SELECT 1');    # dies here if there is no connection
    return $self;
}

# The marker tells the end of a result: psql prints it when the statements
# before it are done.
sub send {
    my ($self, $sql) = @_;
    croak 'the last result was not fetched' if $self->{pending};
    $self->{pending} = 1;
    my $marker = 'done-' . ++$self->{serial};
    local $SIG{PIPE} = 'IGNORE';
    print { $self->{in} } "$sql\n;\n\\echo $marker\n";
    return;
}

sub _read {
    my ($self, $seconds) = @_;
    my $select = IO::Select->new($self->{out});
    return 0 unless $select->can_read($seconds);
    my $got = sysread $self->{out}, my $part, 65536;
    if (!$got) {
        $self->{ended} = 1;
        return 1;
    }
    $self->{buffer} .= $part;
    return 1;
}

sub _complete {
    my ($self) = @_;
    return $self->{ended} || $self->{buffer} =~ /(?:\A|\n)done-$self->{serial}\n/;
}

sub finished {
    my ($self) = @_;
    1 while !$self->_complete && $self->_read(0);
    return $self->_complete ? 1 : 0;
}

sub _result {
    my ($self) = @_;
    croak 'nothing was sent' unless $self->{pending};
    my $deadline = time + 300 * AdsTest::Process::slow();
    while (!$self->_complete) {
        croak 'no result in time' if time > $deadline;
        $self->_read(1);
    }
    $self->{pending} = 0;
    my $text = $self->{buffer};
    $self->{buffer} = '';
    $text =~ s/(?:\A|\n)\Kdone-$self->{serial}\n//;
    push @{ $self->{notified} }, $1
        while $text =~ s/(?:\A|\n)\KAsynchronous notification "([^"]+)"[^\n]*\n//;
    if ($self->{ended} || $text =~ /(?:ERROR|FATAL|PANIC):  /) {
        return ('', AdsTest::Postgres::_error($text));
    }
    $text =~ s/(?:\A|\n)\K(?:NOTICE|WARNING|INFO):[^\n]*\n(?:(?:DETAIL|HINT|LOCATION):[^\n]*\n)*//g;
    return ($text, undef);
}

sub result {
    my ($self) = @_;
    my ($text, $error) = $self->_result;
    croak substr($error->{text}, 0, 2000) if $error;
    return wantarray ? @{ AdsTest::Postgres::_rows($text) } : AdsTest::Postgres::_rows($text);
}

sub query { my ($self, $sql) = @_; $self->send($sql); return $self->result }
sub run   { my ($self, $sql) = @_; $self->send($sql); $self->result; return }
sub row   { my ($self, $sql) = @_; return @{ scalar($self->query($sql))->[0] // [] } }
sub value { my ($self, $sql) = @_; return (scalar($self->query($sql))->[0] // [])->[0] }

sub error {
    my ($self, $sql) = @_;
    $self->send($sql) if defined $sql;
    return ($self->_result)[1];
}

sub backend { return $_[0]{backend} //= $_[0]->value('SELECT pg_backend_pid()') }

# psql looks for notifications after each statement.
sub notified {
    my ($self) = @_;
    $self->query('SELECT 1');
    return splice @{ $self->{notified} };
}

sub close {
    my ($self) = @_;
    return unless $self->{pid};
    local ($?, $!);
    CORE::close($self->{in});
    CORE::close($self->{out});
    waitpid delete $self->{pid}, 0;
    return;
}

sub DESTROY {
    my ($self) = @_;
    $self->close if $self->{pid};
}

1;
