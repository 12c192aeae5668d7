package api

import (
	"errors"
	"net/http"
	"strings"

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

// open reports whether the strongbox is open, or there is none.
func (s *server) open() bool { return s.Strongbox == nil || s.Strongbox.Sealed() == nil }

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
	opened := false
	if !s.open() {
		if opened, err = s.unseal(c, []byte(wanted.Passphrase)); err != nil {
			return err
		}
	}
	if opened {
		c.audit.By, c.audit.As = v1.AuditPassphrase, v1.AuditPassphrase
	} else {
		c.audit.Detail = "it was open already"
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// unseal opens the strongbox, and reports false if another request has done so meanwhile.
func (s *server) unseal(c *call, passphrase []byte) (opened bool, err error) {
	if s.Strongbox.Way() != strongbox.Passphrase {
		return false, problem(http.StatusConflict, "", "", "no passphrase opens it: %s", s.Strongbox.Sealed())
	}
	from := source(c.RemoteAddr)
	err = s.unseals.try(c.Context(), from, func() (failed bool, err error) {
		s.unsealing.Lock()
		defer s.unsealing.Unlock()
		if s.open() {
			return false, nil
		}
		switch err := s.Strongbox.Unseal(passphrase); {
		case errors.Is(err, strongbox.ErrWrong):
			s.Log.Warn("the site stays sealed: the passphrase is wrong", "from", from)
			return true, problem(http.StatusForbidden, "passphrase", "", "the passphrase is wrong; the site stays sealed")
		case err != nil:
			return false, err
		}
		s.Log.Info("the site is unsealed", "from", from)
		opened = true
		return false, nil
	})
	return opened, err
}
