package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/packed"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Kept is a report that a store keeps.
type Kept struct {
	// At is when it was sent.
	At time.Time
	// Cut means that the beginning is left out.
	Cut  bool
	Body []byte
	// History are the last changes of a kind with a history, newest first.
	History []v1.VersionReport
}

// Entry is a report in the form in which a store keeps it.
type Entry struct {
	// Format is the number of its format; empty when Data has it.
	Format string
	// Summary is the JSON of its summary; empty when the kind has none.
	Summary string
	Cut     bool
	Data    []byte
}

// Bounds of the history of a report.
const (
	// MaxHistory is how many of the last reports a history has.
	MaxHistory = 20
	// maxChanges bounds the changes of one report in it, in bytes; changeSize is what a
	// change takes besides its texts.
	maxChanges, changeSize = 16 << 10, 40
)

// history is the form of an entry with a history.
type history struct {
	Body json.RawMessage `json:"versions"`
	// Last is the report that has brought the body, without its time: that is the time of
	// the entry. Past are the reports before it, oldest first.
	Last v1.VersionReport   `json:"last,omitzero"`
	Past []v1.VersionReport `json:"past,omitempty"`
}

// Repeats reports whether a report need not be written, because the one that is kept says the
// same and is good for ever.
func (r Report) Repeats(kept Kept) bool {
	return r.Kind.Again == 0 && kept.Body != nil && r.Cut == kept.Cut && bytes.Equal(r.Body, kept.Body)
}

// Entry returns what is written in place of the report that was kept before; that is empty when
// there is none, or it is damaged.
func (r Report) Entry(before Kept) (Entry, error) {
	if r.Kind.Changes != nil {
		past := slices.Clone(before.History)
		slices.Reverse(past)
		data, err := r.Kind.Format.Encode(history{Body: r.Body, Last: r.Kind.Changes(before.Body, r.Body), Past: past[max(0, len(past)-(MaxHistory-1)):]})
		return Entry{Data: data}, err
	}
	e := Entry{Format: r.Kind.Format.HeaderValue(), Cut: r.Cut, Data: r.Body}
	if r.Kind.Summary != nil {
		summary, err := r.Kind.Summary(r.Body)
		if err != nil {
			return Entry{}, err
		}
		text, err := json.Marshal(summary)
		if err != nil {
			return Entry{}, err
		}
		e.Summary = string(text)
	}
	if r.Kind.Compress {
		data, err := packed.Fast.Pack(r.Body)
		if err != nil {
			return Entry{}, err
		}
		e.Data = data
	}
	return e, nil
}

// Read returns the report in an entry that was written at a time. It does not check the body.
func (k *Kind) Read(e Entry, at time.Time) (Kept, error) {
	kept := Kept{At: at, Cut: e.Cut, Body: e.Data}
	if k.Changes != nil {
		var h history
		switch err := k.Format.Decode(e.Data, &h); {
		case format.IsUnsupported(err):
			return Kept{}, fmt.Errorf("was %w", err)
		case err != nil:
			return Kept{}, damaged(err)
		}
		h.Last.At = at
		kept.Body, kept.History = h.Body, append(h.Past, h.Last)
		slices.Reverse(kept.History)
		return kept, nil
	}
	switch err := k.Format.CheckHeader(e.Format); {
	case format.IsUnsupported(err):
		return Kept{}, fmt.Errorf("was %w", err)
	case err != nil:
		return Kept{}, damaged(err)
	}
	if k.Compress {
		body, err := packed.Unpack(e.Data, k.MaxBody)
		if err != nil {
			return Kept{}, damaged(err)
		}
		kept.Body = body
	}
	return kept, nil
}

// damaged marks why an entry or a body cannot be read.
func damaged(why error) error { return fmt.Errorf("%w: %w", ErrDamaged, why) }
