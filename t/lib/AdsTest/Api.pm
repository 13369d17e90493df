package AdsTest::Api;

=head1 NAME

AdsTest::Api - nginx-ads api behind a real nginx, as docs/console.md configures them

=head1 SYNOPSIS

    my $api = AdsTest::Api->new(pg => $pg);
    my $res = $api->call('GET', '/campaigns', as => 'alice');   # { status, headers, body, json }

Its users are named as their roles, but for carol, an advertiser:acme, and nobody, who has none;
the password of all is "secret". With C<< console => 1 >> nginx has the page and the module as well,
with the catalog of PostgreSQL, tracks below /spot/, and ships its events; with C<< alone => 1 >>
there is no API.

=cut

use strict;
use warnings;

use Cwd qw(abs_path);
use JSON::PP ();
use MIME::Base64 qw(encode_base64);

use AdsTest::Ads ();
use AdsTest::Nginx;
use AdsTest::Process qw(alive spawn);

my $json = JSON::PP->new->utf8->canonical;

our %Users = (
    viewer => 'viewer', operator => 'operator', manager => 'manager', admin => 'admin',
    carol  => 'advertiser:acme', dave => 'advertiser:other', nobody => '',
);

# That of the documentation, with places of its own.
sub conf {
    my (%o) = @_;
    my $text = AdsTest::Nginx::slurp('docs/console.md');
    my ($map)      = $text =~ m{^(map \S+ \$hides_node .*?^\}\n)}ms or die "docs/console.md has no map\n";
    my ($location) = $text =~ m{^(    location /console/ \{\n.*?^    \}\n)}ms or die "docs/console.md has no location\n";
    $location =~ s{/etc/nginx-ads/}{%%PREFIX%%/conf/}g;
    $location =~ s{/run/nginx-ads/}{%%PREFIX%%/}g;
    my $console = abs_path('build/console');
    my ($http, $server) = ('', '');
    $location =~ s{^        location /console/api/ \{\n.*?^        \}\n}{}ms if $o{alone};
    if ($o{console}) {
        $location =~ s/ads_console;/ads_console $console;/ or die "docs/console.md has no ads_console\n";
        $http = AdsTest::Ads::http_conf(state => 'logs/state', %o);
        $http =~ s/ads_catalog file [^;]*/ads_catalog postgres poll=1s/ if $o{pg};
        $http .= sprintf qq{    ads_postgres "%s" interval=50ms;\n}, $o{pg}->conninfo if $o{pg};
        $server = AdsTest::Ads::locations() . "        ads_base /spot/;\n" . ($o{server} // '');
    }
    else {
        $location =~ s/^.*\bads_\w+(?: \w+)?;.*\n//mg;
    }
    my $roles = join "\n", map {"        $_ \"$Users{$_}\";"} grep { length $Users{$_} } sort keys %Users;
    return <<"CONF";
$http
    map \$remote_user \$console_role {
$roles
        default "";
    }
$map
    server {
        listen 127.0.0.1:%%PORT%%;
        root html;
$server
$location
    }
CONF
}

sub new {
    my ($class, %o) = @_;
    my $self = bless { pg => $o{pg}, options => $o{options} // [], owner => $$ }, $class;
    $self->{ngx} = my $ngx = AdsTest::Nginx->new($o{port} ? (port => $o{port}) : (), $o{console} ? () : (modules => []), conf => "http {\n" . conf(%o) . "}\n");
    $ngx->write_file('conf/users', join '', map {"$_:{PLAIN}secret\n"} sort keys %Users);
    $ngx->write_file('conf/proof', "a proof that is long enough\n");
    $ngx->write_file('conf/proof.conf', qq{scgi_param ADS_PROOF "a proof that is long enough";\n});
    chmod 0600, $ngx->path('conf/proof') or die "$!\n";
    $self->start_api if $o{pg};
    $ngx->start;
    return $self;
}

sub socket { return $_[0]{ngx}->path('api.sock') }

sub start_api {
    my ($self) = @_;
    my $ngx = $self->{ngx};
    $self->{pid} = spawn([ $ENV{ADS_COMMAND} // 'build/nginx-ads', 'api', 'run', '--db', $self->{pg}->conninfo, '--socket', $self->socket,
        '--proof', $ngx->path('conf/proof'), '--host', 'localhost', @{ $self->{options} } ], {}, $ngx->path('logs/api.log'));
    $self->{starts}++;
    my $listens = sub { my @lines = $self->log =~ /listening to/g; return @lines == $self->{starts} };
    wait_until { $listens->() || !alive($self->{pid}, $self->{statuses} //= {}) } 30, 'the socket';
    $listens->() or die "the api ended: " . $self->log;
    $self->{mode} = (stat $self->socket)[2] & 07777;
    # nginx's workers may be somebody else.
    chmod 0666, $self->socket or die "$!\n";
    return;
}

sub log { my ($self) = @_; return AdsTest::Nginx::slurp($self->{ngx}->path('logs/api.log')) // '' }

# Its exit status, once it has ended.
sub stop_api {
    my ($self, $signal) = @_;
    kill $signal // 'TERM', $self->{pid};
    wait_until { !alive($self->{pid}, $self->{statuses} //= {}) } 60, 'the api to end';
    return $self->{statuses}{ $self->{pid} };
}

# as => user; headers, body (data or text), path below the prefix or with raw => 1 any.
sub call {
    my ($self, $method, $path, %o) = @_;
    my $body = ref $o{body} ? $json->encode($o{body}) : $o{body};
    my %headers = (
        $o{as} ? (Authorization => 'Basic ' . encode_base64("$o{as}:secret", '')) : (),
        $method =~ /^(?:GET|HEAD)\z/ ? () : ('Content-Type' => 'application/json', 'Sec-Fetch-Site' => 'same-origin'),
        %{ $o{headers} // {} },
    );
    delete $headers{$_} for grep { !defined $headers{$_} } keys %headers;
    my $res = $self->{ngx}->request($method, $o{raw} ? $path : "/console/api$path", \%headers, $body);
    $res->{json} = eval { $json->decode($res->{body}) } if ($res->{headers}{'content-type'} // '') eq 'application/json';
    return $res;
}

sub finish {
    my ($self) = @_;
    return if $self->{finished}++ || $self->{owner} != $$;
    $self->stop_api if $self->{pid} && alive($self->{pid}, $self->{statuses} //= {});
    $self->{ngx}->stop;
    return;
}

sub DESTROY { local ($?, $@); $_[0]->finish; return }

1;
