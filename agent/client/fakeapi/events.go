package fakeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// event is one change of a run; its id is its place in the list, from 1.
type event struct {
	tenant string
	data   []byte
}

// publish tells watchers of a run; s.mu is held.
func (s *Server) publish(name string, run v1.Run) {
	data, err := json.Marshal(run)
	if err != nil {
		panic("fakeapi: cannot write a run as JSON: " + err.Error())
	}
	s.events = append(s.events, event{name, data})
	s.announce()
}

// announce wakes whoever waits for a change; s.mu is held.
func (s *Server) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// CutStreams closes the connection of every watcher.
func (s *Server) CutStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

// AwaitStreams returns when exactly n watchers are connected, or the server
// ends.
func (s *Server) AwaitStreams(n int) {
	for {
		s.mu.Lock()
		open, changed := s.streams, s.changed
		s.mu.Unlock()
		if open == n {
			return
		}
		select {
		case <-changed:
		case <-s.closed:
			return
		}
	}
}

func (s *Server) countStream(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams += by
	s.announce()
}

// getEvents sends what came after Last-Event-ID; without one it begins with
// the newest event, which is the current run.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("tenant")
	at, err := strconv.Atoi(r.Header.Get("Last-Event-ID"))
	if err != nil {
		at = s.beforeNewest(name)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	_, _ = fmt.Fprint(w, ": fakeapi\n\n")
	_ = flush()
	s.mu.Lock()
	cut := s.cut
	s.mu.Unlock()
	s.countStream(1)
	defer s.countStream(-1)
	for {
		s.mu.Lock()
		events, changed := s.events, s.changed
		s.mu.Unlock()
		for ; at < len(events); at++ {
			if e := events[at]; e.tenant == name {
				_, _ = fmt.Fprintf(w, "event: run\nid: %d\ndata: %s\n\n", at+1, e.data)
			}
		}
		_ = flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-s.closed:
			return
		case <-cut:
			panic(http.ErrAbortHandler)
		}
	}
}

// beforeNewest is the id that the newest event of a tenant follows.
func (s *Server) beforeNewest(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.events); i > 0; i-- {
		if s.events[i-1].tenant == name {
			return i - 1
		}
	}
	return len(s.events)
}
