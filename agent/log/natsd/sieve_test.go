package natsd

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

// TestSieve checks that what is too large is left out, whatever it contains,
// and all else goes through as it is, however it is cut into pieces.
func TestSieve(t *testing.T) {
	t.Parallel()
	msg := func(size int, text string) string {
		return fmt.Sprintf("MSG osu-in.acme.h01.telemetry.alive 1 %d\r\n%s\r\n", size, strings.Repeat(text, size)[:size])
	}
	header := func(headers, body int) string {
		return fmt.Sprintf("HMSG osu-in.acme.h01.call.newest 2 _INBOX.acme.h01.x %d %d\r\n%s\r\n", headers, headers+body, strings.Repeat("h", headers+body))
	}
	through := []string{
		"INFO {\"nonce\":\"x\"}\r\n", "PING\r\n", msg(0, "x"), msg(100, "x"), header(maxHeaders, 10), msg(maxFromHost, "MSG a 1 3\r\n"), "-ERR 'MSG 1 2 3'\r\n", "PONG\r\n",
	}
	var sent, want strings.Builder
	for _, part := range through {
		want.WriteString(part)
		sent.WriteString(part)
		sent.WriteString(msg(maxFromHost+1, "MSG a 1 3\r\n"))
		sent.WriteString(header(maxHeaders+1, 0))
		sent.WriteString(header(1, maxFromHost))
	}
	for name, source := range map[string]io.Reader{
		"whole": strings.NewReader(sent.String()), "by halves": iotest.HalfReader(strings.NewReader(sent.String())),
		"bytewise": iotest.OneByteReader(strings.NewReader(sent.String())),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sieve{in: bufio.NewReaderSize(source, 4096), log: slog.New(slog.DiscardHandler)}
			got, err := io.ReadAll(s)
			if err != nil || string(got) != want.String() {
				t.Errorf("%d bytes of %d come through, %v", len(got), want.Len(), err)
			}
		})
	}
}

// TestSieveWaitsForNothing checks that what has come is handed over though
// nothing follows it.
func TestSieveWaitsForNothing(t *testing.T) {
	t.Parallel()
	server, client := net.Pipe()
	defer func() { _ = server.Close() }()
	go func() { _, _ = io.WriteString(server, "PING\r\nMSG a 1 3\r\nabc\r\n") }()
	s := &sieve{Conn: client, in: bufio.NewReader(client), log: slog.New(slog.DiscardHandler)}
	got := make([]byte, 22)
	if _, err := io.ReadFull(s, got); err != nil || string(got) != "PING\r\nMSG a 1 3\r\nabc\r\n" {
		t.Errorf("%q, %v", got, err)
	}
}
