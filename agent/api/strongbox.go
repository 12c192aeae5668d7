package api

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/strongbox"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Strongbox seals the secrets of the site. While it is sealed, no operation below /v1 is
// carried out, but the one that unseals it.
type Strongbox interface {
	// Sealed returns why it is sealed, a *strongbox.SealedError; nil if it is open.
	Sealed() error
	Way() strongbox.Way
	// Unseal opens it; strongbox.ErrWrong means that the passphrase is another one.
	Unseal(passphrase []byte) error
}

// sealedRetry is how many seconds a client should wait when the site is sealed: a person
// has to do something.
const sealedRetry = "10"

// sealed returns the answer to an operation that a sealed site does not carry out.
func (s *server) sealed(route route) error {
	if s.Strongbox == nil || route.unseals || !strings.HasPrefix(route.path, "/v1/") {
		return nil
	}
	return s.Strongbox.Sealed()
}

// postUnseal opens the strongbox with its passphrase. It needs no token: whoever has the
// passphrase has more than any token gives, and nobody can log in before.
func (s *server) postUnseal(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeUnseal(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	s.unsealing.Lock()
	defer s.unsealing.Unlock()
	if s.Strongbox == nil || s.Strongbox.Sealed() == nil {
		c.audit.Detail = "it was open already"
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if s.Strongbox.Way() != strongbox.Passphrase {
		return problem(http.StatusConflict, "", "", "no passphrase opens it: %s", s.Strongbox.Sealed())
	}
	from := source(c.RemoteAddr)
	if left := s.unseals.blocked(from, time.Now()); left > 0 {
		return problem(http.StatusTooManyRequests, "", "", "too many wrong passphrases have come from %s; try again in %s", from, left.Round(time.Second))
	}
	switch err := s.Strongbox.Unseal([]byte(wanted.Passphrase)); {
	case errors.Is(err, strongbox.ErrWrong):
		s.unseals.failed(from, time.Now())
		s.Log.Warn("the site stays sealed: the passphrase is wrong", "from", from)
		return problem(http.StatusForbidden, "passphrase", "", "the passphrase is wrong; the site stays sealed")
	case err != nil:
		return err
	}
	c.audit.By, c.audit.As = v1.AuditPassphrase, v1.AuditPassphrase
	s.Log.Info("the site is unsealed", "from", from)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
