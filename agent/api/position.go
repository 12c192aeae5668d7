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
	// seq is the sequence of the last record that the event contains, news the number of
	// the last news that were sent.
	seq, news uint64
}

// String is the id: "1f3z0-42-7".
func (p position) String() string { return fmt.Sprintf("%s-%d-%d", p.log, p.seq, p.news) }

// parsePosition is the reverse of String; false for a text that is no id.
func parsePosition(id string) (p position, ok bool) {
	parts := strings.Split(id, "-")
	if len(parts) != 3 {
		return position{}, false
	}
	seq, wrongSeq := strconv.ParseUint(parts[1], 10, 64)
	news, wrongNews := strconv.ParseUint(parts[2], 10, 64)
	return position{log: parts[0], seq: seq, news: news}, wrongSeq == nil && wrongNews == nil
}

// follows returns why a client that has seen an id cannot take what is now for what
// came after it; empty when it can. oldest is the number of the oldest news that are kept.
func (p position) follows(id string, oldest uint64) string {
	seen, ok := parsePosition(id)
	switch {
	case !ok:
		return fmt.Sprintf("%s %.80q is not an id of this stream", lastEventID, id)
	case seen.log != p.log:
		return fmt.Sprintf("%s %.80q is of another log than the one that the site has now: it was put back from a backup, or made anew", lastEventID, id)
	case seen.seq > p.seq || seen.news > p.news:
		return fmt.Sprintf("%s %.80q is beyond the end of the log, which is %s", lastEventID, id, p)
	case seen.news+1 < oldest:
		return fmt.Sprintf("%s %.80q is too old: of the news after it, %d are not kept any more", lastEventID, id, oldest-seen.news-1)
	}
	return ""
}
