# A service in miniature for a machine that has Perl only: answers /health and one embedding, tells systemd when it
# is ready, starts a child as the gateway starts its engine. Words: serve --host H --port N.
use strict;
use warnings;
use IO::Socket::INET;
use Socket;

my %option = @ARGV[ 1 .. $#ARGV ];
die "told to fail\n" if -e "$ENV{SAMPAN_BUNDLE}/app/broken";
my $server = IO::Socket::INET->new(
    LocalAddr => $option{"--host"}, LocalPort => $option{"--port"}, Listen => 16, ReuseAddr => 1
) or die "cannot listen: $!\n";

my $child = fork() // die "cannot fork: $!\n";
if ($child == 0) { close $server; sleep 1 while getppid() != 1; exit 0; }
$SIG{TERM} = sub { kill "TERM", $child; exit 0; };
mkdir "$ENV{RUNTIME_DIRECTORY}/own", 0700 or die "no run folder: $!\n";
rmdir "$ENV{RUNTIME_DIRECTORY}/own";

if (my $address = $ENV{NOTIFY_SOCKET}) {
    $address =~ s/^\@/\0/;
    socket(my $notify, AF_UNIX, SOCK_DGRAM, 0) or die "$!";
    send($notify, "READY=1", 0, pack_sockaddr_un($address)) or die "cannot notify: $!\n";
}

# little-endian floats in base64, as the self-test asks for them: (0, 1) where it shall be wrong, else (1, 0)
my $vector = -e "$ENV{SAMPAN_BUNDLE}/app/wrong" ? '"AAAAAAAAgD8="' : '"AACAPwAAAAA="';
while (1) {
    my $client = $server->accept() or next;
    my ($length, $line) = (0, "");
    my $first = <$client> // "";
    while (defined($line = <$client>) && $line ne "\r\n") { $length = $1 if $line =~ /^content-length:\s*(\d+)/i; }
    read($client, my $body, $length) if $length;
    my $answer =
        $first =~ m{/health}     ? '{"status":"ok"}'
      : $first =~ m{/v1/models}  ? '{"object":"list","data":[{"id":"mini-model","object":"model"}]}'
      : '{"object":"list","model":"mini-model","data":[{"object":"embedding","index":0,"embedding":' . $vector . '}]}';
    print $client "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "
      . length($answer) . "\r\n\r\n$answer";
    close $client;
}
