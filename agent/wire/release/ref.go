package release

import (
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Ref names a release by its name and digest. A name and a digest are the same thing for ever.
type Ref struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// IsZero reports whether it names no release.
func (r Ref) IsZero() bool { return r == Ref{} }

// String returns the reference as it travels in a header: the name, a blank and the digest.
func (r Ref) String() string {
	if r.IsZero() {
		return ""
	}
	return r.Name + " " + r.Digest
}

// ParseRef reads what String has returned.
func ParseRef(text string) (Ref, error) {
	if text == "" {
		return Ref{}, nil
	}
	name, digest, found := strings.Cut(text, " ")
	r := Ref{Name: name, Digest: digest}
	if !found {
		return Ref{}, fmt.Errorf("release %.100q has no digest; it is to be NAME sha256:HEX", text)
	}
	return r, r.Check()
}

// Check tells what is wrong with a reference.
func (r Ref) Check() error {
	switch {
	case !names.Valid(r.Name):
		return fmt.Errorf("release %.100q is not a name: %s", r.Name, names.Form)
	case !ValidDigest(r.Digest):
		return fmt.Errorf("digest %.100q of release %s is to be sha256: and %d hex digits", r.Digest, r.Name, digestLength)
	}
	return nil
}

// digestPrefix begins each digest, digestLength is how many hex digits follow.
const (
	digestPrefix = "sha256:"
	digestLength = 64
)

// ValidDigest reports whether a text has the form of the digest of a release.
func ValidDigest(digest string) bool {
	sum, isSHA256 := strings.CutPrefix(digest, digestPrefix)
	return isSHA256 && len(sum) == digestLength && strings.Trim(sum, "0123456789abcdef") == ""
}

// Ref returns the name and the digest.
func (p Pin) Ref() Ref { return Ref{Name: p.Name, Digest: p.Digest} }

// Check tells what is wrong with a pin: with its name, its digest, or a text that does not have the
// digest. A text that is not there yet is right.
func (p Pin) Check() error {
	if err := p.Ref().Check(); err != nil {
		return err
	}
	if len(p.Text) == 0 {
		return nil
	}
	_, err := p.Release()
	return err
}
