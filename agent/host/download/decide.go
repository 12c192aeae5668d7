package download

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// action is what an answer of the server leads to.
type action int

const (
	// use: the file that is there is complete and current.
	use action = iota + 1
	// fill: the body is appended to the Synced bytes of the record.
	fill
	// afresh: the answer does not continue what is there; the server is asked for all.
	afresh
)

// decision is an action with the record of what the file will be.
type decision struct {
	do     action
	record record
}

// ask adds to a request what makes the server send only what is missing.
func ask(h http.Header, kept record) {
	switch {
	case kept.Validator == "":
	case kept.Complete && strings.HasPrefix(kept.Validator, `"`):
		h.Set("If-None-Match", kept.Validator)
	case kept.Complete:
		h.Set("If-Modified-Since", kept.Validator)
	case kept.Synced > 0:
		// With If-Range a server whose content has changed sends all of it.
		h.Set("Range", "bytes="+strconv.FormatInt(kept.Synced, 10)+"-")
		h.Set("If-Range", kept.Validator)
	}
}

// decide returns what follows from the head of an answer. length is the length of its
// body, negative if unknown.
func decide(kept record, address string, status int, h http.Header, length int64) (decision, error) {
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return decision{}, strategy.Fail(message.Artifact, fmt.Errorf("the server sends it with the content coding %.50q; it must send the file as it is", coding))
	}
	switch {
	case status == http.StatusNotModified && kept.Complete:
		return decision{use, kept}, nil
	case status == http.StatusOK:
		return decision{fill, record{Address: address, Validator: validator(h), Size: length}}, nil
	case status == http.StatusPartialContent && kept.Synced > 0 && !kept.Complete:
		return resume(kept, h)
	case status == http.StatusRequestedRangeNotSatisfiable && kept.Synced > 0:
		// All of it was there when the last download broke off, or the content became
		// shorter: the server did not heed If-Range.
		return decision{do: afresh}, nil
	default:
		return decision{}, refused(status)
	}
}

// resume returns what follows from a part of the content.
func resume(kept record, h http.Header) (decision, error) {
	first, size, ok := parseRange(h.Get("Content-Range"))
	given := validator(h)
	if !ok || first != kept.Synced || kept.Size >= 0 && size != kept.Size || given != "" && given != kept.Validator {
		return decision{do: afresh}, nil
	}
	kept.Size = size
	return decision{fill, kept}, nil
}

// parseRange reads the header Content-Range of a part up to the end of the content,
// such as "bytes 100-199/200" (RFC 9110 14.4).
func parseRange(text string) (first, size int64, ok bool) {
	unit, rest, _ := strings.Cut(text, " ")
	part, whole, _ := strings.Cut(rest, "/")
	from, to, _ := strings.Cut(part, "-")
	first, ok1 := number(from)
	last, ok2 := number(to)
	size, ok3 := number(whole)
	return first, size, strings.EqualFold(unit, "bytes") && ok1 && ok2 && ok3 && first <= last && last == size-1
}

// validator returns what tells a content from others byte for byte: a strong entity
// tag, or a time of modification so far in the past that another change cannot have
// the same one (RFC 9110 8.8.2.2). It returns "" if there is none.
func validator(h http.Header) string {
	if tag := h.Get("ETag"); len(tag) >= 2 && strings.HasPrefix(tag, `"`) && strings.HasSuffix(tag, `"`) {
		return tag
	}
	modified, err := http.ParseTime(h.Get("Last-Modified"))
	if err != nil {
		return ""
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil || now.Sub(modified) < time.Minute {
		return ""
	}
	return h.Get("Last-Modified")
}
