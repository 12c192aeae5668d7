package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Authority is the answer of GET /v1/join/ca: the certificates to trust for the site. A
// host asks for it before it trusts the site, so the join token contains their fingerprint.
type Authority struct {
	CA string `json:"ca"`
}

// Fingerprint returns the SHA-256 of the certificates in a text, in hex. Of one
// certificate it is what openssl x509 -fingerprint -sha256 shows. It fails if there is
// none.
func Fingerprint(certificates []byte) (string, error) {
	sum, some := sha256.New(), false
	for {
		block, rest := pem.Decode(certificates)
		if block == nil {
			break
		}
		if certificates = rest; block.Type == "CERTIFICATE" {
			some = true
			_, _ = sum.Write(block.Bytes) // It never fails.
		}
	}
	if !some {
		return "", errors.New("there is no certificate in PEM form")
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Join is the body of POST /v1/join: a host that joins the site. The request carries a join
// token.
type Join struct {
	Host string `json:"host"`
	// PublicKey is the public key of the host. The seed never leaves the host.
	PublicKey string `json:"public-key"`
	// Proof is the signature of hostkey.Prove, by this key for this host.
	Proof string `json:"proof"`
}

// maxKey and maxProof bound a public key and a signature, in characters.
const maxKey, maxProof = 60, 100

// DecodeJoin reads the body of a request to join and validates it, as DecodeOSUpgrade
// does.
func DecodeJoin(contentType string, body []byte) (Join, error) {
	return decode(contentType, body, Join{}, Join.Validate)
}

// Validate returns everything that is wrong with the values, and nothing when all
// is right.
func (j Join) Validate() Problems {
	var found Problems
	if !names.ValidHost(j.Host) {
		found = append(found, document.Wrong("host", j.Host, "is not the name of a host"))
	}
	if j.PublicKey == "" || len(j.PublicKey) > maxKey {
		found = append(found, document.Wrong("public-key", j.PublicKey, "is not the public key of a host, such as osupgrade-agent worker join makes"))
	}
	if j.Proof == "" || len(j.Proof) > maxProof {
		found = append(found, document.Wrong("proof", j.Proof, "is not a signature, such as osupgrade-agent worker join makes"))
	}
	return found
}

// Joined is the answer to a host that has joined: everything that its worker needs.
type Joined struct {
	Tenant      string `json:"tenant"`
	Host        string `json:"host"`
	Application string `json:"application"`
	// NATSURL is where the worker connects, and CA the certificates to trust there; empty
	// means those of the system.
	NATSURL string `json:"nats-url"`
	CA      string `json:"ca,omitempty"`
	// Waiting says that the site lets the host in only once a person has approved it.
	Waiting bool `json:"waiting,omitempty"`
}

// NewJoinToken is the body of POST .../os-upgrade/join-tokens.
type NewJoinToken struct {
	// Host is the name of the host that may join, or a pattern such as web-*.
	Host string `json:"host"`
	// Application is the worker application of the host.
	Application string `json:"application"`
	// MaxHosts is how many hosts may join, at most 1000; one by default.
	MaxHosts int `json:"max-hosts,omitempty" within:"1 1000"`
	// Labels are given to each host that joins, by which a rollout can select it. They win over
	// what the host says of itself.
	Labels map[string]string `json:"labels,omitempty"`
	// Approve keeps each host waiting until a person has approved it.
	Approve bool `json:"approve,omitempty"`
	// Valid is how long the token can be used; empty means DefaultJoinValid.
	Valid string `json:"valid,omitempty"`
	// Replace allows a host that already has a key to join. The old key is revoked once the
	// host has connected with the new one.
	Replace bool `json:"replace,omitempty"`
}

// MaxJoinHosts is how many hosts can join with one token.
const MaxJoinHosts = 1000

// DefaultJoinValid is how long a join token can be used unless somebody says
// otherwise.
const DefaultJoinValid = time.Hour

// DecodeNewJoinToken reads the body of a request for a join token and validates it,
// as DecodeOSUpgrade does.
func DecodeNewJoinToken(contentType string, body []byte) (NewJoinToken, error) {
	return decode(contentType, body, NewJoinToken{}, NewJoinToken.Validate)
}

// Validate returns everything that is wrong with the values, and nothing when all
// is right.
func (n NewJoinToken) Validate() Problems {
	var found Problems
	if !ValidHostPattern(n.Host) {
		found = append(found, document.Wrong("host", n.Host, `is neither the name of a host nor a pattern; use letters, digits, "-", "_" and ".", and "*" for any of them`))
	}
	if !names.Valid(n.Application) {
		found = append(found, document.Wrong("application", n.Application, "is not the name of a worker application; "+names.Form))
	}
	found = append(found, n.manyProblems()...)
	found = append(found, labelProblems(n.Labels)...)
	if _, err := n.Duration(); err != nil {
		found = append(found, Problem{Field: "valid", Value: document.Clip(n.Valid), Message: err.Error()})
	}
	return found
}

// manyProblems returns what is wrong with a token for several hosts.
func (n NewJoinToken) manyProblems() Problems {
	count := strconv.Itoa(n.MaxHosts)
	switch {
	case n.MaxHosts < 0 || n.MaxHosts > MaxJoinHosts:
		return Problems{document.Wrong("max-hosts", count, fmt.Sprintf("is out of range; use 1 to %d, and several tokens for more hosts", MaxJoinHosts))}
	case n.MaxHosts <= 1 || !ValidHostPattern(n.Host):
		return nil
	case !strings.Contains(n.Host, "*"):
		return Problems{document.Wrong("max-hosts", count, fmt.Sprintf("is more than 1, and only one host can be called %s; use a pattern such as %s-*", n.Host, n.Host))}
	case strings.Trim(n.Host, "*-_.") == "" && !n.Approve:
		return Problems{document.Wrong("host", n.Host, "fits every name; use what the names of the hosts have in common, such as web-*, or let a person approve each host (approve)")}
	}
	return nil
}

// labelProblems returns what is wrong with the labels of a token.
func labelProblems(labels map[string]string) (found Problems) {
	if len(labels) > names.MaxLabels {
		found = append(found, document.Wrong("labels", strconv.Itoa(len(labels)), fmt.Sprintf("are too many; use at most %d", names.MaxLabels)))
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if value := labels[key]; !names.ValidLabel(key) || value != "" && !names.ValidLabel(value) {
			found = append(found, document.Wrong("labels", key+"="+value, "is not a label: key and value are 1 to 63 of letters, digits, \"-\", \"_\", \".\" and \"/\"; the value may be empty"))
		}
	}
	return found
}

// Duration returns how long the token can be used.
func (n NewJoinToken) Duration() (time.Duration, error) {
	if n.Valid == "" {
		return DefaultJoinValid, nil
	}
	return window.ParseLength(n.Valid)
}

// ValidHostPattern reports whether a text is the name of a host, or such a name with
// "*" for any number of its characters.
func ValidHostPattern(pattern string) bool {
	return names.ValidHost(strings.ReplaceAll(pattern, "*", "a"))
}

// JoinToken is a join token as GET .../os-upgrade/join-tokens lists it.
type JoinToken struct {
	ID          string `json:"id"`
	Tenant      string `json:"tenant"`
	Host        string `json:"host"`
	Application string `json:"application"`
	// MaxHosts is how many hosts may join.
	MaxHosts int               `json:"max-hosts"`
	Labels   map[string]string `json:"labels,omitempty"`
	Approve  bool              `json:"approve,omitempty"`
	Expires  time.Time         `json:"expires"`
	Replace  bool              `json:"replace,omitempty"`
	// By is who created it.
	By string `json:"by,omitempty"`
	// State is open, used (as many hosts as may have joined) or expired.
	State string `json:"state"`
	// UsedBy are the hosts that have joined with it or wait for approval.
	UsedBy []JoinUse `json:"used-by,omitempty"`
	// Token is the text, only in the answer to POST: the site does not keep it.
	Token string `json:"token,omitempty"`
	// Damage says why its file cannot be read; only in the list of all tenants.
	Damage string `json:"damage,omitempty"`
}

// JoinUse is a host that has used a join token.
type JoinUse struct {
	Host      string    `json:"host"`
	PublicKey string    `json:"public-key"`
	At        time.Time `json:"at"`
	// From is the address from which the host has asked.
	From string `json:"from,omitempty"`
	// Status is joined, waiting (for approval), refused, or withdrawn if its key was withdrawn.
	Status string `json:"status"`
	// By is who has approved or refused the host.
	By string `json:"by,omitempty"`
}

// What became of a host that has used a join token.
const (
	JoinJoined    = "joined"
	JoinWaiting   = "waiting"
	JoinRefused   = "refused"
	JoinWithdrawn = "withdrawn"
)

// WaitingHost is a host that waits for approval, as GET .../os-upgrade/waiting-hosts lists it.
type WaitingHost struct {
	Host string `json:"host"`
	// PublicKey is the key of the host. Compare it with what worker join printed on the host.
	PublicKey string `json:"public-key"`
	// From is the address from which the host has asked, and At when.
	From        string            `json:"from"`
	At          time.Time         `json:"at"`
	Tenant      string            `json:"tenant"`
	Application string            `json:"application"`
	Labels      map[string]string `json:"labels,omitempty"`
	// Token is the id of the join token. When the token expires, the host waits no longer.
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

// HostVerdict is the body of POST .../os-upgrade/waiting-hosts/{host}/approve and refuse.
type HostVerdict struct {
	// PublicKey is the key of the host on which you decide.
	PublicKey string `json:"public-key"`
}

// DecodeHostVerdict reads the body of a request to approve or refuse a host and validates it, as
// DecodeOSUpgrade does.
func DecodeHostVerdict(contentType string, body []byte) (HostVerdict, error) {
	return decode(contentType, body, HostVerdict{}, HostVerdict.Validate)
}

// Validate returns everything that is wrong with the values, and nothing when all
// is right.
func (v HostVerdict) Validate() Problems {
	if v.PublicKey == "" || len(v.PublicKey) > maxKey {
		return Problems{document.Wrong("public-key", v.PublicKey, "is not the public key of a host, such as osupgrade-agent hosts --waiting shows")}
	}
	return nil
}
