package message

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/packed"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// The bounds of a plan. A larger plan is refused, never cut: an upgrade is proved by its
// plan, and what is not in the plan is not proved.
const (
	// MaxChanges bounds the changes of a plan, and what it holds back.
	MaxChanges = 10_000
	// MaxPlanName bounds a name or a version in a plan, in bytes.
	MaxPlanName = 512
	// MaxPlanBody bounds the JSON of a plan, in bytes.
	MaxPlanBody = 2 << 20
)

// ChangeSet is what an upgrade of a host changes, from which version to which.
type ChangeSet struct {
	// System is what the host runs, such as "debian 12 amd64": the same package has other versions on
	// another system. It is given if the run has a release.
	System string `json:"system,omitempty"`
	// Changes are sorted by name, each name once.
	Changes []Change `json:"changes,omitempty"`
	// Held is what stays as it is though there is something newer, and why.
	Held []HeldPackage `json:"held,omitempty"`
	// Download is how many bytes are fetched for it; 0 when unknown.
	Download int64 `json:"download-bytes,omitempty"`
	// Reboot is why the upgrade takes a reboot; empty when it is not known to take one.
	Reboot string `json:"reboot,omitempty"`
	// Release is the release that an offer is made against, as release.Ref.String has it; empty if
	// that is the newest that the host finds, and in the plan of a run.
	Release string `json:"release,omitempty"`
}

// Change is the change of one package, image or deployment.
type Change struct {
	Name string `json:"name"`
	// From is empty for what is new, To for what is removed.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// HeldPackage is a package, image or deployment that is not upgraded though it could be.
type HeldPackage struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Offered string `json:"offered,omitempty"`
	// Reason is a text for people, such as "held by apt-mark".
	Reason string `json:"reason"`
}

// String returns a text for people, such as "nginx 1.22 → 1.24".
func (c Change) String() string {
	switch {
	case c.From == "":
		return c.Name + " " + c.To + " (new)"
	case c.To == "":
		return c.Name + " " + c.From + " (removed)"
	default:
		return c.Name + " " + c.From + " → " + c.To
	}
}

// ChangeTexts returns each change for people.
func ChangeTexts(changes []Change) []string {
	texts := make([]string, 0, len(changes))
	for _, c := range changes {
		texts = append(texts, c.String())
	}
	return texts
}

// Empty reports whether a plan says nothing at all.
func (p ChangeSet) Empty() bool {
	return len(p.Changes) == 0 && len(p.Held) == 0 && p.Download == 0 && p.Reboot == ""
}

// Sorted returns the plan with its changes and what it holds back sorted by name.
func (p ChangeSet) Sorted() ChangeSet {
	p.Changes = slices.SortedFunc(slices.Values(p.Changes), func(a, b Change) int { return cmp.Compare(a.Name, b.Name) })
	p.Held = slices.SortedFunc(slices.Values(p.Held), func(a, b HeldPackage) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// Rejected are versions that were rolled back on a host, by the names of what they are of;
// the name "" stands for any.
type Rejected map[string][]string

// Has reports whether a version of a name was rolled back.
func (r Rejected) Has(name, version string) bool {
	return version != "" && (slices.Contains(r[name], version) || slices.Contains(r[""], version))
}

// Withhold returns the plan in which each change to a version that was rolled back is
// held back; why is the reason for people.
func (p ChangeSet) Withhold(rejected Rejected, why string) ChangeSet {
	changes := make([]Change, 0, len(p.Changes))
	held := slices.Clone(p.Held)
	for _, c := range p.Changes {
		if rejected.Has(c.Name, c.To) {
			held = append(held, HeldPackage{Name: c.Name, Version: c.From, Offered: c.To, Reason: why})
			continue
		}
		changes = append(changes, c)
	}
	p.Changes, p.Held = changes, held
	return p.Sorted()
}

// Check returns an error for a plan that is out of bounds or does not say what it
// changes.
func (p ChangeSet) Check() error {
	switch {
	case len(p.Changes) > MaxChanges:
		return fmt.Errorf("it has %d changes; at most %d", len(p.Changes), MaxChanges)
	case len(p.Held) > MaxChanges:
		return fmt.Errorf("it holds %d back; at most %d", len(p.Held), MaxChanges)
	case p.Download < 0:
		return fmt.Errorf("its download-bytes are %d; use 0 or more", p.Download)
	}
	if err := checkText("reboot", p.Reboot, MaxText); err != nil {
		return err
	}
	if _, err := release.ParseRef(p.Release); err != nil {
		return err
	}
	if err := checkText("system", p.System, MaxPlanName); err != nil {
		return err
	}
	for i, c := range p.Changes {
		if err := c.check(); err != nil {
			return fmt.Errorf("change %d: %w", i+1, err)
		}
		if i > 0 && p.Changes[i-1].Name >= c.Name {
			return fmt.Errorf("change %d: %q follows %q; sort the changes by name, each name once", i+1, c.Name, p.Changes[i-1].Name)
		}
	}
	for i, h := range p.Held {
		if err := h.check(); err != nil {
			return fmt.Errorf("held %d: %w", i+1, err)
		}
	}
	return nil
}

func (c Change) check() error {
	switch {
	case c.Name == "":
		return fmt.Errorf("it has no name")
	case c.From == "" && c.To == "":
		return fmt.Errorf("%q has neither from nor to; name the version before, the one after, or both", c.Name)
	case c.From == c.To:
		return fmt.Errorf("%q stays at %q; a change has two versions", c.Name, c.To)
	}
	return checkNames("name", c.Name, "from", c.From, "to", c.To)
}

func (h HeldPackage) check() error {
	switch {
	case h.Name == "":
		return fmt.Errorf("it has no name")
	case h.Reason == "":
		return fmt.Errorf("%q has no reason; say why it stays", h.Name)
	}
	if err := checkText("reason", h.Reason, MaxText); err != nil {
		return err
	}
	return checkNames("name", h.Name, "version", h.Version, "offered", h.Offered)
}

// checkNames checks pairs of a member and its value.
func checkNames(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if err := checkText(pairs[i], pairs[i+1], MaxPlanName); err != nil {
			return err
		}
	}
	return nil
}

func checkText(member, value string, limit int) error {
	switch {
	case len(value) > limit:
		return fmt.Errorf("its %s has %d bytes; at most %d", member, len(value), limit)
	case !utf8.ValidString(value), value != CleanText(value):
		return fmt.Errorf("its %s %.100q is not plain text: use UTF-8 without control characters and outer blanks", member, value)
	}
	return nil
}

// EncodePlan returns the JSON of a plan.
func EncodePlan(p ChangeSet) []byte { return encode(p) }

// DecodePlan reads the JSON of a plan. Members that it does not know are ignored, so
// that a newer host can say more.
func DecodePlan(body []byte) (ChangeSet, error) {
	if len(body) > MaxPlanBody {
		return ChangeSet{}, fmt.Errorf("cannot read plan: it has %d bytes; at most %d", len(body), MaxPlanBody)
	}
	var p ChangeSet
	if err := json.Unmarshal(body, &p); err != nil {
		return ChangeSet{}, fmt.Errorf("cannot read plan: %w", err)
	}
	p = p.Sorted()
	if err := p.Check(); err != nil {
		return ChangeSet{}, fmt.Errorf("cannot read plan: %w", err)
	}
	return p, nil
}

// MaxPackedPlan bounds a plan on its way to the site, in bytes: one of MaxChanges with
// names and versions as they are fits in.
const MaxPackedPlan = MaxVersionsBody

// PackPlan returns a plan as it travels and is kept: its JSON, compressed.
func PackPlan(p ChangeSet) ([]byte, error) {
	plan, err := packed.Small.Pack(EncodePlan(p))
	if err != nil {
		return nil, err
	}
	if len(plan) > MaxPackedPlan {
		return nil, fmt.Errorf("the plan has %d bytes when it is packed; at most %d", len(plan), MaxPackedPlan)
	}
	return plan, nil
}

// UnpackPlan reads what PackPlan has made.
func UnpackPlan(plan []byte) (ChangeSet, error) {
	if len(plan) > MaxPackedPlan {
		return ChangeSet{}, fmt.Errorf("cannot read plan: it has %d bytes; at most %d", len(plan), MaxPackedPlan)
	}
	body, err := packed.Unpack(plan, MaxPlanBody+1)
	if err != nil {
		return ChangeSet{}, fmt.Errorf("cannot read plan: %w", err)
	}
	return DecodePlan(body)
}

// Class says what kind a failure is.
type Class string

// The classes of failures; a failure without one is not classified.
const (
	// Transient is a failure that passes by itself: it is tried again.
	Transient Class = "transient"
	// Artifact is a download that is not what it should be: a wrong signature, sum or
	// kind of machine.
	Artifact Class = "artifact"
	// Space is too little room on a disk.
	Space Class = "space"
	// Lock is a lock that somebody else holds: it is tried again.
	Lock Class = "lock"
	// Repository is a source of packages that is down, has expired or is wrong.
	Repository Class = "repository"
	// Install is an installation that went wrong.
	Install Class = "install"
	// Boot is a new system that did not start.
	Boot Class = "boot"
	// Verify is an upgraded host that is not well.
	Verify Class = "verify"
)

// Classes are the classes of failures.
func Classes() []Class {
	return []Class{Transient, Artifact, Space, Lock, Repository, Install, Boot, Verify}
}

// Known reports whether c is a class of failures.
func (c Class) Known() bool { return slices.Contains(Classes(), c) }

// Passes reports whether a failure of the class may pass by itself, so that the worker
// tries again.
func (c Class) Passes() bool { return c == Transient || c == Lock }

// ParseClass reads a class.
func ParseClass(s string) (Class, error) {
	if c := Class(s); c.Known() {
		return c, nil
	}
	names := make([]string, 0, len(Classes()))
	for _, c := range Classes() {
		names = append(names, string(c))
	}
	return "", fmt.Errorf("%.50q is not a class of failures; use one of %s", s, strings.Join(names, ", "))
}
