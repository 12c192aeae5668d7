package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

const (
	// heartbeat is how often a quiet event stream shows that it is alive.
	heartbeat = 15 * time.Second
	// writeTimeout is how long a slow reader of events may block one.
	writeTimeout = 10 * time.Second
	// smooth is the least time between two events, so that a run over many
	// hosts costs a reader ten messages a second and not thousands.
	smooth = 100 * time.Millisecond
	// share bounds what a reader costs: of so many parts of the time an event
	// takes one, however many hosts the run has.
	share = 10
	// longestRest keeps a reader that is slow itself from waiting for long.
	longestRest = 2 * time.Second
)

// stream is one event stream on its way to a client.
type stream struct {
	*call
	out *http.ResponseController
	// sent is the last event, so that what has not changed is not sent again.
	sent []byte
}

// getEvents answers with the newest run now and after each change, as
// server-sent events named "run" whose id is the log's sequence.
func (s *server) getEvents(c *call) error {
	if err := s.onSite(c); err != nil {
		return err
	}
	changed, stop, err := c.controller.Watch(c.Context())
	if err != nil {
		return err
	}
	defer stop()
	c.w.Header().Set("Content-Type", "text/event-stream")
	out := &stream{call: c, out: http.NewResponseController(c.w)}
	out.follow(changed)
	return nil
}

// follow returns when the client is gone or too slow; it connects again.
func (st *stream) follow(changed <-chan struct{}) {
	quiet := time.NewTicker(heartbeat)
	defer quiet.Stop()
	if st.write([]byte(": hello\n\n")) != nil || st.event() != nil {
		return
	}
	for {
		var err error
		select {
		case <-st.Context().Done():
			return
		case <-quiet.C:
			err = st.write([]byte(": alive\n\n"))
		case <-changed:
			begun := time.Now()
			err = st.event()
			_ = wait.Sleep(st.Context(), min(max(smooth, (share-1)*time.Since(begun)), longestRest))
		}
		if err != nil {
			return
		}
	}
}

// event sends the newest run, if it has changed since the last event.
func (st *stream) event() error {
	run, seq, found, err := st.controller.Newest(st.Context())
	if err != nil || !found {
		return err
	}
	data, err := json.Marshal(run)
	if err != nil {
		return err
	}
	if bytes.Equal(data, st.sent) {
		return nil
	}
	st.sent = data
	return st.write(fmt.Appendf(nil, "event: run\nid: %s\ndata: %s\n\n", strconv.FormatUint(seq, 10), data))
}

func (st *stream) write(data []byte) error {
	if err := st.out.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := st.w.Write(data); err != nil {
		return err
	}
	return st.out.Flush()
}
