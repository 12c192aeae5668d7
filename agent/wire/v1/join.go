package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
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
}

// NewJoinToken is the body of POST .../os-upgrade/join-tokens.
type NewJoinToken struct {
	// Host is the name of the host that may join, or a pattern such as web-*.
	Host string `json:"host"`
	// Application is the worker application of the host.
	Application string `json:"application"`
	// Valid is how long the token can be used; empty means DefaultJoinValid.
	Valid string `json:"valid,omitempty"`
	// Replace allows a host that already has a key to join. The old key is revoked once the
	// host has connected with the new one.
	Replace bool `json:"replace,omitempty"`
}

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
	if _, err := n.Duration(); err != nil {
		found = append(found, Problem{Field: "valid", Value: document.Clip(n.Valid), Message: err.Error()})
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
	ID          string    `json:"id"`
	Tenant      string    `json:"tenant"`
	Host        string    `json:"host"`
	Application string    `json:"application"`
	Expires     time.Time `json:"expires"`
	Replace     bool      `json:"replace,omitempty"`
	// By is who created it.
	By string `json:"by,omitempty"`
	// State is open, used or expired.
	State string `json:"state"`
	// UsedBy is the host that joined with it, and UsedAt when.
	UsedBy string     `json:"used-by,omitempty"`
	UsedAt *time.Time `json:"used-at,omitempty"`
	// Token is the text, only in the answer to POST: the site does not keep it.
	Token string `json:"token,omitempty"`
	// Damage says why its file cannot be read; only in the list of all tenants.
	Damage string `json:"damage,omitempty"`
}
