package fakeapi

import (
	"context"
	"net/http"
	"strings"
)

// stream is an event stream of a client. Server.mu guards it.
type stream struct {
	tenant *tenant
	// sending is the last change that the stream shows with what it sends now, shown with
	// what it has sent; tenant is nil until it has sent something.
	sending, shown uint64
}

// streamKey is the key of a stream in the context of its request.
type streamKey struct{}

// sends notes that a stream sends what is so now. Server.mu is held.
func (t *tenant) sends(ctx context.Context) {
	if st, ofStream := ctx.Value(streamKey{}).(*stream); ofStream {
		st.sending = t.seq
	}
}

// sent notes that a stream has sent that.
func (t *tenant) sent(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if st, ofStream := ctx.Value(streamKey{}).(*stream); ofStream {
		st.tenant, st.shown = t, st.sending
		t.announce()
	}
}

// announce wakes AwaitStreams; s.mu is held.
func (s *Server) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// AwaitStreams returns when exactly n watchers are connected and were sent what is so now, or
// the server ends. A stream does not show what was so for a moment between two events: a test
// whose client must see that waits here before it goes on.
func (s *Server) AwaitStreams(n int) {
	for {
		s.mu.Lock()
		open, behind, changed := 0, 0, s.changed
		for st := range s.streams {
			if st.tenant == nil {
				continue
			}
			if open++; st.shown < st.tenant.seq {
				behind++
			}
		}
		s.mu.Unlock()
		if open == n && behind == 0 {
			return
		}
		select {
		case <-changed:
		case <-s.closed:
			return
		}
	}
}

// CutStreams closes the connection of every watcher.
func (s *Server) CutStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

// streaming notes event streams, and ends those that are cut, and all with the server.
func (s *Server) streaming(serve http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/events") {
			serve.ServeHTTP(w, r)
			return
		}
		st := &stream{}
		s.mu.Lock()
		s.streams[st] = true
		cut := s.cut
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.streams, st)
			s.announce()
		}()
		ctx, end := context.WithCancel(context.WithValue(r.Context(), streamKey{}, st))
		defer end()
		go func() {
			select {
			case <-cut:
			case <-s.closed:
			case <-ctx.Done():
			}
			end()
		}()
		serve.ServeHTTP(w, r.WithContext(ctx))
		if r.Context().Err() == nil && ctx.Err() != nil {
			panic(http.ErrAbortHandler)
		}
	})
}
