// Package report has the kinds of what a host reports: its versions, what an upgrade would
// change, what its machine consists of, and the plan and the output of a run. One table says
// of each kind how large a report may be, how often it is sent, and how it is kept.
//
// It decides which reports are well-formed, when one is sent again, and in which form a
// store keeps it. It does no I/O.
package report

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Kind is a kind of report. A site keeps the last report of each kind of a host, and deletes
// it with the host. Of a kind with OfRun it keeps one for each run and part, and deletes the
// oldest when there are too many.
type Kind struct {
	// Name is what people and the wire call it, Format the format of what is kept.
	Name   string
	Format format.Kind
	// Bucket is where a store keeps the reports of a kind that is not OfRun.
	Bucket string
	// OfRun means that a report is about the newest run, and Parts are what each run has one
	// report of; nil when it has just one. No two kinds have a part of the same name.
	OfRun bool
	Parts []string
	// MayBeCut means that a host may send the end of a report instead of all of it.
	MayBeCut bool
	// MaxBody bounds a report, in bytes.
	MaxBody int
	// MaxDay bounds what a host sends in a day, in bytes; 0 means that nothing does. The worker
	// keeps to it, and the gate refuses what is beyond.
	MaxDay int
	// Again is how long a host waits until it sends a report again that is the same: an
	// older one is of a host that is away, or that cannot make it any more. 0 means that
	// what the site has is not sent again.
	Again time.Duration
	// EverySite means that no site is too old to take such a report: a worker warns when one
	// is refused.
	EverySite bool
	// Check returns the body as it is kept, or what is wrong with it.
	Check func(body []byte) ([]byte, error)
	// Compress means that a store compresses the body.
	Compress bool
	// Summary returns what lists show of a report; nil when there are no lists. A store
	// reads the summaries of many hosts without their reports.
	Summary func(body []byte) (any, error)
	// Changes compares a body with the one before, which is nil for the first; nil when no
	// history is kept.
	Changes func(before, after []byte) v1.VersionReport
	// Show adds a report to what the API shows of its host; nil when it is shown elsewhere.
	Show func(Kept, *v1.Host) error
}

const day = 24 * time.Hour

// The kinds of reports.
var (
	// Versions are the versions of the packages of a host.
	Versions = &Kind{
		Name: "versions", Format: format.Versions, Bucket: "osu-versions", MaxBody: message.MaxVersionsBody, EverySite: true,
		Check: checkVersions, Changes: changedVersions, Show: showVersions,
	}
	// Offer is the packed plan of an upgrade that would begin now.
	Offer = &Kind{
		Name: "offer", Format: format.Plan, Bucket: "osu-offers", MaxBody: message.MaxPackedPlan, MaxDay: 1 << 20, Again: day,
		Check: checkPlan, Summary: summarizePlan,
	}
	// Inventory is what the machine of a host consists of.
	Inventory = &Kind{
		Name: "inventory", Format: format.Inventory, Bucket: "osu-inventories", MaxBody: inventory.MaxBody, MaxDay: 256 << 10, Again: day,
		Check: checkInventory, Show: showInventory,
	}
	// Plan is the packed plan of a run.
	Plan = &Kind{
		Name: "plan", Format: format.Plan, OfRun: true, MaxBody: message.MaxPackedPlan,
		Check: checkPlan,
	}
	// Output is what an action of a run has printed.
	Output = &Kind{
		Name: "output", Format: format.Output, OfRun: true, Parts: message.OutputActions(), MayBeCut: true, MaxBody: message.MaxOutput, MaxDay: 128 << 20,
		Check: cleanOutput, Compress: true,
	}
)

// Kinds are all kinds.
var Kinds = []*Kind{Versions, Offer, Inventory, Plan, Output}

// OfHosts are the kinds of which a host has one report, whatever runs there are.
func OfHosts() []*Kind {
	return slices.DeleteFunc(slices.Clone(Kinds), func(k *Kind) bool { return k.OfRun })
}

// ID says which of the reports of a host is meant. Run and Part are those of a kind that has
// them.
type ID struct {
	Kind *Kind
	Run  uint64
	Part string
}

// Report is a report as a host sends it.
type Report struct {
	ID
	// Cut means that the beginning is left out.
	Cut  bool
	Body []byte
}

// Of returns a report that is of no run.
func (k *Kind) Of(body []byte) Report { return Report{ID: ID{Kind: k}, Body: body} }

// String is the report for people, such as "output of upgrade in run 7".
func (id ID) String() string {
	s := id.Kind.Name
	if id.Part != "" {
		s += " of " + id.Part
	}
	if id.Run != 0 {
		s += fmt.Sprintf(" in run %d", id.Run)
	}
	return s
}

// cut is the word that ends those of a report of which the beginning is left out.
const cut = "cut"

// Words are the report without its body, for the wire.
func (r Report) Words() []string {
	words := []string{r.Kind.Name}
	if r.Kind.OfRun {
		words = append(words, strconv.FormatUint(r.Run, 10))
	}
	if r.Part != "" {
		words = append(words, r.Part)
	}
	if r.Cut {
		words = append(words, cut)
	}
	return words
}

// Parse returns the report that Words describes, with a body that Check accepts.
func Parse(words []string, body []byte) (r Report, err error) {
	kind, rest := words[0], words[1:]
	if r.Kind = Named(kind); r.Kind == nil {
		return r, fmt.Errorf("there is no report %.20q", kind)
	}
	if r.Kind.OfRun && len(rest) > 0 {
		if r.Run, err = strconv.ParseUint(rest[0], 10, 64); err != nil {
			return r, fmt.Errorf("%.20q is no run", rest[0])
		}
		rest = rest[1:]
	}
	if r.Kind.Parts != nil && len(rest) > 0 {
		if r.Part = rest[0]; !slices.Contains(r.Kind.Parts, r.Part) {
			return r, fmt.Errorf("%.20q is no action", rest[0])
		}
		rest = rest[1:]
	}
	if r.Cut = r.Kind.MayBeCut && slices.Equal(rest, []string{cut}); r.Cut {
		rest = nil
	}
	switch {
	case len(rest) > 0 || r.Kind.Parts != nil && r.Part == "" || r.Kind.OfRun && len(words) == 1:
		return r, fmt.Errorf("there is no report %.80q", words)
	case len(body) > r.Kind.MaxBody:
		return r, fmt.Errorf("the %s has at most %d bytes, this one has %d", r.Kind.Name, r.Kind.MaxBody, len(body))
	}
	r.Body, err = r.Kind.Check(body)
	return r, err
}

// Named returns the kind of a name; nil when there is none.
func Named(name string) *Kind {
	for _, k := range Kinds {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// Told says which report of a kind a site has of a host.
type Told struct {
	// Digest identifies its body; it is empty when there is none.
	Digest string `json:"digest,omitempty"`
	// At is when the host has sent it.
	At time.Time `json:"at,omitzero"`
}

// Digest identifies a body.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Told returns what a host is told of a report that is kept.
func (k Kept) Told() Told { return Told{Digest: Digest(k.Body), At: k.At} }

// ErrDamaged means that what is kept cannot be read. Another report replaces it.
var ErrDamaged = errors.New("is damaged")

// ErrNotFound means that no report is kept.
var ErrNotFound = errors.New("not found")
