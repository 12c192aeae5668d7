package natsd

import (
	"bufio"
	"bytes"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Limits of a message from a host, in bytes. The largest message of an honest host
// is its versions, and its headers are short. A message that is a little too large
// is passed on, so that the host gets an error. The server's own max_payload cannot
// do this: it holds for an account as a whole, to which the agent belongs, too, and
// it does not limit headers.
const (
	maxHeaders  = 512
	maxFromHost = 2 * message.MaxVersionsBody
)

// receiveBuffer is what a connection for hosts buffers, in bytes: each tenant has one, and most
// of them are idle. It is many messages of an honest host.
const receiveBuffer = 16 << 10

// receiver connects inside of the process for what hosts send.
type receiver struct {
	server *Server
	tenant string
	log    *slog.Logger
}

// InProcessConn implements nats.InProcessConnProvider.
func (r receiver) InProcessConn() (net.Conn, error) {
	conn, err := r.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	floods := func(host string) {
		// Not here: the server waits for this connection to be read.
		go r.server.floods(Identity{Tenant: r.tenant, Host: host})
	}
	return &sieve{Conn: conn, in: bufio.NewReaderSize(conn, receiveBuffer), log: r.log, floods: floods}, nil
}

// sieve is a connection to the server that drops each message that is larger than
// any of an honest host, before nats.go sees it: nats.go parses headers in the loop
// that reads the connection, and 4 MiB of them keep it busy for so long that the
// server closes the connection.
type sieve struct {
	net.Conn
	in  *bufio.Reader
	log *slog.Logger
	// floods is called once a host has sent too many messages, which rate counts.
	floods func(host string)
	rate   rate
	// line is the rest of a line of the protocol to return, body the number of bytes
	// of the message's body after it.
	line []byte
	body int
}

// Read implements net.Conn.
func (s *sieve) Read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		switch {
		case len(s.line) > 0:
			some := copy(p[n:], s.line)
			s.line, n = s.line[some:], n+some
		case n > 0 && s.in.Buffered() == 0:
			return n, nil
		case s.body > 0:
			var some int
			some, err = s.in.Read(p[n:min(len(p), n+s.body)])
			s.body, n = s.body-some, n+some
		default:
			err = s.next()
		}
	}
	return n, err
}

// next reads the next line that is passed on.
func (s *sieve) next() error {
	line, err := s.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	subject, headers, size, ok := announced(line)
	if !ok {
		s.line = line
		return nil
	}
	if host, over := s.rate.exceeded(subject, time.Now()); over {
		s.floods(host)
	}
	if headers <= maxHeaders && size <= maxFromHost {
		s.line, s.body = line, size+len("\r\n")
		return nil
	}
	s.drop(subject, headers, size)
	_, err = s.in.Discard(size + len("\r\n"))
	return err
}

// drop logs a dropped message.
func (s *sieve) drop(subject []byte, headers, size int) {
	s.log.Warn("dropped a message of a host: it is larger than any that a host has to send",
		"subject", short(string(subject)), "bytes", size, "header-bytes", headers)
}

// announced returns the subject and the sizes of the message that a line of the protocol
// announces: "MSG SUBJECT SID [REPLY] SIZE" or "HMSG SUBJECT SID [REPLY] HEADERS SIZE"; false
// for any other line.
func announced(line []byte) (subject []byte, headers, size int, ok bool) {
	with := bytes.HasPrefix(line, []byte("HMSG "))
	if !with && !bytes.HasPrefix(line, []byte("MSG ")) {
		return nil, 0, 0, false
	}
	fields := bytes.Fields(line)
	if len(fields) < 4 {
		return nil, 0, 0, false
	}
	size, err := strconv.Atoi(string(fields[len(fields)-1]))
	if err == nil && with {
		headers, err = strconv.Atoi(string(fields[len(fields)-2]))
	}
	return fields[1], headers, size, err == nil && size >= 0
}
