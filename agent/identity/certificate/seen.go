package certificate

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"os"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// seenList is the newest list of revoked certificates that was ever taken up from one
// authority. It is kept on disk, so that an older list is refused after a restart, too.
type seenList struct {
	Issuer string `json:"issuer"`
	// Number is empty if the authority does not count its lists.
	Number     string    `json:"number,omitempty"`
	ThisUpdate time.Time `json:"this-update"`
}

// seenLists are by the hash of the public key that signed them, in hex: an authority that begins
// anew with another key counts anew.
type seenLists map[string]seenList

// content is what the file holds.
const content = "lists"

func signedBy(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

func seenOf(list *x509.RevocationList) seenList {
	s := seenList{Issuer: list.Issuer.String(), ThisUpdate: list.ThisUpdate.UTC()}
	if list.Number != nil {
		s.Number = list.Number.String()
	}
	return s
}

// older returns why a list of revoked certificates is older than the one that was seen of the
// same authority; nil if it is not. An authority counts its lists (RFC 5280 5.2.3); the date
// decides between those of one that does not.
func (s seenList) older(list *x509.RevocationList) error {
	number, counted := new(big.Int).SetString(s.Number, 10)
	switch {
	case list.Number == nil || !counted:
		if list.ThisUpdate.Before(s.ThisUpdate) {
			return fmt.Errorf("is dated %s, and the one in force %s", date(list.ThisUpdate), date(s.ThisUpdate))
		}
	case list.Number.Cmp(number) < 0:
		return fmt.Errorf("has number %s, and the one in force has number %s", list.Number, number)
	}
	return nil
}

// with returns what was seen once the lists of t are taken up, or why one of them is older: it
// would take back what was revoked since.
func (s seenLists) with(t *trust, file string) (seenLists, error) {
	next := seenLists{}
	maps.Copy(next, s)
	for key, list := range t.lists {
		if last, known := s[key]; known {
			if err := last.older(list); err != nil {
				return nil, fmt.Errorf("client-crl-file: the list of %.100q in %s %w: an older list would take back revocations; put the newest one in place", list.Issuer, file, err)
			}
		}
		next[key] = seenOf(list)
	}
	return next, nil
}

// readSeen reads the file of an earlier process; nothing was seen if there is none.
func readSeen(path string) (seenLists, error) {
	seen := seenLists{}
	body, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return seen, nil
	}
	if err == nil {
		err = format.Revocations.DecodeSummed(body, content, &seen)
	}
	switch {
	case format.IsUnsupported(err):
		return nil, fmt.Errorf("%s, which has the newest lists of revoked certificates, was %w; start a version that reads it", path, err)
	case err != nil:
		return nil, fmt.Errorf("cannot read %s, which has the newest lists of revoked certificates: %w; put the newest list in place as client-crl-file, then remove this file", path, err)
	}
	return seen, nil
}

// writeSeen writes the file.
func writeSeen(path string, seen seenLists) error {
	body, err := format.Revocations.EncodeSummed(content, seen)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, body, 0o600)
}
