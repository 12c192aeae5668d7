// Package format numbers what the program stores and the protocol between site
// and worker, so that one version can be replaced by another and back again.
//
// It decides whether this version may read what another one wrote. It does no
// I/O and knows no kind's content.
//
// # The rule
//
// Each kind of stored thing has a format number of its own, and each stored
// thing bears the number that it was written with: JSON as its member "format",
// a record of the log or of the history as a header. The first release writes
// format 1 of everything.
//
//   - A version whose newest format is N writes N and reads N and N-1. The next
//     release therefore goes on with what the last one wrote.
//   - A stored thing of another format is refused. The error names the format that was
//     found and the formats that are read. The thing is not damaged: it must not be
//     removed, repaired or overwritten.
//   - A stored thing without a number was written before the first release, or is
//     damaged. If its content does not fit its number, it is damaged.
//   - Within a format a version may add members. A reader ignores members that it
//     does not know, and drops them when it writes the thing anew; those of a
//     configuration, rollout or calendar it keeps. The way back to an older release is
//     therefore open for as long as the number is the same.
//   - A change raises the number if it adds a member that a reader must not ignore or
//     drop, removes a member, changes the meaning of one, or adds a value to a member
//     whose values are known, such as the name of an event.
//
// Three kinds of things have no number: files that people write (configuration, scripts,
// packages and faults of a simulated host), files in a foreign format (keys,
// certificates, dev.env), and the bodies of commands and replies, which are Avassa's.
// Those bodies are read strictly, so that a host never executes half of a command. Our
// additions to them are headers.
package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Kind is a kind of stored thing.
type Kind struct {
	// Name is what people call it.
	Name string
	// Newest is the format that this version writes. It reads the one before,
	// too.
	Newest int
}

// The kinds of stored things.
var (
	// Record is a record of a tenant's log.
	Record = Kind{"record", 1}
	// Guard says how far a tenant's log went.
	Guard = Kind{"guard", 1}
	// Lease says which worker works for a host.
	Lease = Kind{"lease", 1}
	// Config is a configuration, rollout, calendar or webhook of a tenant.
	Config = Kind{"configuration", 1}
	// Host is what a site keeps of a host, LastRuns how hosts came out of runs that are not on
	// the log any more, Versions what a host reported.
	Host     = Kind{"host", 1}
	LastRuns = Kind{"last runs", 1}
	Versions = Kind{"versions", 1}
	// Inventory is what a machine consists of, as its worker tells it.
	Inventory = Kind{"inventory", 1}
	// Run is an ended run in the history.
	Run = Kind{"run", 1}
	// Webhook says how far a webhook has come.
	Webhook = Kind{"state of a webhook", 1}
	// News are what people and programs were told of.
	News = Kind{"news", 1}
	// Output is what an action of a host has printed.
	Output = Kind{"output", 1}
	// Marks and Seal are the files that check the folder of the embedded server.
	Marks = Kind{"high-water marks", 1}
	Seal  = Kind{"seal", 1}
	// Backup is a copy of a site.
	Backup = Kind{"backup", 1}
	// HostKey and Token let a host and a client in.
	HostKey = Kind{"host key", 1}
	Token   = Kind{"token", 1}
	// User and Approle log in, the latter with a SecretID.
	User     = Kind{"user", 1}
	Approle  = Kind{"approle", 1}
	SecretID = Kind{"secret-id", 1}
	// Policy is a set of rules that a tenant has made.
	Policy = Kind{"policy", 1}
	// Tenant is a tenant that was made or removed while its site ran.
	Tenant = Kind{"tenant", 1}
	// TokenUse says when each token was last used.
	TokenUse = Kind{"last uses of tokens", 1}
	// Audit is a record of an audit log, AuditHead says how far a log has come.
	Audit     = Kind{"audit record", 1}
	AuditHead = Kind{"head of an audit log", 1}
	// Strongbox has the keys that seal the secrets of a site, Sealed is a file that it has
	// sealed.
	Strongbox = Kind{"strongbox", 1}
	Sealed    = Kind{"sealed file", 1}
	// Revocations are the newest lists of revoked client certificates.
	Revocations = Kind{"newest lists of revoked certificates", 1}
	// JoinToken lets a host join.
	JoinToken = Kind{"join token", 1}
	// Journal is what a worker remembers, Plan what it has prepared, Kept the runs that it can roll
	// back, Identity what its state directory is called.
	Journal  = Kind{"journal", 1}
	Plan     = Kind{"plan", 1}
	Kept     = Kind{"kept runs", 1}
	Identity = Kind{"identity", 1}
	// Boots is what a worker remembers of the starts of its machine, and what an operator
	// accepts of it.
	Boots = Kind{"boots", 1}
	// Baseline is what checks after an upgrade compare a host with.
	Baseline = Kind{"baseline", 1}
	// Download says what a strategy has downloaded, and how much of it is on disk.
	Download = Kind{"download", 1}
	// Busy is a busy lease, by which a program says that its host is not to be upgraded now.
	// BusySeen is what a worker has seen of them.
	Busy     = Kind{"busy lease", 1}
	BusySeen = Kind{"seen busy leases", 1}
	// Action is the request to a program that carries out an action of a host.
	Action = Kind{"request of an action", 1}
	// Simulated is a file of a simulated host.
	Simulated = Kind{"simulated host", 1}
)

// Header is the NATS header with the number of what has no member for it.
const Header = "Osu-Format"

// UnsupportedError means that a stored thing was written by a version that is
// too new or too old for this one. It is not damaged.
type UnsupportedError struct {
	Kind Kind
	// Number is what the thing bears.
	Number int
}

// Error says which format was found and which ones are read.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("written by format %d, this version reads %s", e.Number, numbers(e.Kind.Newest))
}

// IsUnsupported reports whether err means that a stored thing is of a format
// that this version does not read.
func IsUnsupported(err error) bool {
	_, ok := errors.AsType[*UnsupportedError](err)
	return ok
}

// numbers lists the newest number and the one before, if there is one.
func numbers(newest int) string {
	if newest == 1 {
		return "1"
	}
	return fmt.Sprintf("%d and %d", newest-1, newest)
}

// ErrNoNumber means that a stored thing bears no number. Every release has written one.
var ErrNoNumber = errors.New("it bears no format number: it was written by a version before the first release, or is damaged")

// Check reports whether this version reads a format.
func (k Kind) Check(number int) error {
	switch {
	case number < 1:
		return ErrNoNumber
	case number > k.Newest || number < k.Newest-1:
		return &UnsupportedError{Kind: k, Number: number}
	}
	return nil
}

// HeaderValue is the value of Header of what this version writes.
func (k Kind) HeaderValue() string { return strconv.Itoa(k.Newest) }

// CheckHeader is Check for a value of Header.
func (k Kind) CheckHeader(value string) error {
	number, err := strconv.Atoi(value)
	if err != nil {
		return ErrNoNumber
	}
	return k.Check(number)
}

// Encode returns a value as a JSON object with its format as the first member.
// The value must be an object that has no such member itself.
func (k Kind) Encode(value any) ([]byte, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	rest, object := bytes.CutPrefix(body, []byte("{"))
	if !object {
		return nil, fmt.Errorf("cannot write a %s: a %T is no JSON object", k.Name, value)
	}
	numbered := make([]byte, 0, len(head)+len(",")+len(body)+maxDigits)
	numbered = strconv.AppendInt(append(numbered, head...), int64(k.Newest), 10)
	if !bytes.Equal(rest, []byte("}")) {
		numbered = append(numbered, ',')
	}
	return append(numbered, rest...), nil
}

// head is how a thing with a number begins, maxDigits how long a number is at most.
const (
	head      = `{"format":`
	maxDigits = 20
)

// Decode reads what Encode has written. An error for which IsUnsupported does
// not hold means that the text is damaged.
func (k Kind) Decode(text []byte, value any) error {
	if k.writes(text) {
		return json.Unmarshal(text, value)
	}
	var numbered struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &numbered); err != nil {
		return err
	}
	if err := k.Check(numbered.Format); err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}

// writes reports whether a text begins with the number that this version writes, as all that
// Encode has written does: it need not be read twice.
func (k Kind) writes(text []byte) bool {
	rest, begins := bytes.CutPrefix(text, []byte(head))
	rest, same := bytes.CutPrefix(rest, strconv.AppendInt(nil, int64(k.Newest), 10))
	return begins && same && (bytes.HasPrefix(rest, []byte(",")) || bytes.HasPrefix(rest, []byte("}")))
}
