package site

import (
	linked "container/list"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
)

// callers are the connections to the REST API. When there are more than the limit, the one
// is closed that has had nothing to answer for the longest time: whoever opens connections
// and sends nothing, or sends slowly, loses them to those who ask something.
type callers struct {
	most int

	mu  sync.Mutex
	all map[net.Conn]*caller
	// silent are the callers without a request to answer, in the order in which they fell
	// silent.
	silent linked.List
}

// caller is one connection. HTTP/2 has several requests on it at once.
type caller struct {
	asks int
	// silent is its place in the list of silent callers; nil while it asks.
	silent *linked.Element
}

func newCallers(most int) *callers {
	return &callers{most: most, all: map[net.Conn]*caller{}}
}

// follow is http.Server.ConnState.
func (c *callers) follow(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if loser := c.add(conn); loser != nil {
			hangUp(loser)
		}
	case http.StateClosed, http.StateHijacked:
		c.remove(conn)
	case http.StateActive, http.StateIdle: // A request that has begun may never end; see answering.
	}
}

// add notes a new connection and returns the one that it is one too many for; nil if there
// is room.
func (c *callers) add(conn net.Conn) (loser net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= c.most {
		loser = conn
		if first := c.silent.Front(); first != nil {
			loser, _ = first.Value.(net.Conn)
		}
	}
	if loser != conn {
		c.all[conn] = &caller{silent: c.silent.PushBack(conn)}
	}
	if loser != nil {
		c.forget(loser)
	}
	return loser
}

func (c *callers) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(conn)
}

func (c *callers) forget(conn net.Conn) {
	if known := c.all[conn]; known != nil && known.silent != nil {
		c.silent.Remove(known.silent)
	}
	delete(c.all, conn)
}

// begin notes that a connection has a request to answer, end that it has one less.
func (c *callers) begin(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.all[conn]
	if known == nil {
		return
	}
	if known.asks++; known.silent != nil {
		c.silent.Remove(known.silent)
		known.silent = nil
	}
}

func (c *callers) end(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.all[conn]
	if known == nil {
		return
	}
	if known.asks--; known.asks == 0 {
		known.silent = c.silent.PushBack(conn)
	}
}

// hangUp closes a connection at once. tls.Conn.Close would say good-bye, and wait for room to
// do so.
func hangUp(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	_ = conn.Close()
}

// connectionKey is the key of the connection in the context of a request.
type connectionKey struct{}

// connect is http.Server.ConnContext.
func connect(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// answering returns a handler that notes which callers have a request to answer: one that
// has been received as a whole.
func (c *callers) answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, ok := r.Context().Value(connectionKey{}).(net.Conn)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		body := &receiving{ReadCloser: r.Body, received: sync.OnceFunc(func() { c.begin(conn) })}
		r.Body = body
		if r.ContentLength == 0 {
			body.received()
		}
		defer func() {
			body.received() // So that begin and end are called once each.
			c.end(conn)
		}()
		next.ServeHTTP(w, r)
	})
}

// receiving is the body of a request; received is called at its end.
type receiving struct {
	io.ReadCloser

	received func()
}

// Read implements io.Reader.
func (b *receiving) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.received()
	}
	return n, err
}
