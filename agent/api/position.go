package api

import (
	"fmt"
	"strconv"
	"strings"
)

// lastEventID is the header with which a client of an event stream says how far it has
// seen (WHATWG HTML 9.2).
const lastEventID = "Last-Event-ID"

// position is how far an event stream is, and the id of its events. It is a fact of the
// log and not of the process, so it means the same after a restart.
type position struct {
	// log is the identity of the log.
	log string
	// seq is the sequence of the last record that the event contains.
	seq uint64
}

// String is the id: "1f3z0-42".
func (p position) String() string { return p.log + "-" + strconv.FormatUint(p.seq, 10) }

// follows returns why a client that has seen an id cannot take what is now for what
// came after it; empty when it can.
func (p position) follows(id string) string {
	log, rest, _ := strings.Cut(id, "-")
	seq, err := strconv.ParseUint(rest, 10, 64)
	switch {
	case err != nil:
		return fmt.Sprintf("%s %.80q is not an id of this stream", lastEventID, id)
	case log != p.log:
		return fmt.Sprintf("%s %.80q is of another log than the one that the site has now: it was put back from a backup, or made anew", lastEventID, id)
	case seq > p.seq:
		return fmt.Sprintf("%s %.80q is beyond the end of the log, which is %s", lastEventID, id, p)
	}
	return ""
}
