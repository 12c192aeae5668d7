package api

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Strongbox seals the secrets of the site. While it is sealed, no operation below /v1 is
// carried out, but the one that unseals it.
type Strongbox interface {
	// Sealed returns why it is sealed, a *strongbox.SealedError; nil if it is open.
	Sealed() error
	Way() strongbox.Way
	// Unseal opens it; strongbox.ErrWrong means that the passphrase is another one.
	Unseal(passphrase []byte) error
	// Opener says what opens it, Unaided why it would not open by itself.
	Opener() string
	Unaided() error
	// Prove returns why a secret does not open it.
	Prove(secret []byte) error
	// Rewrap changes what opens it, Rotate makes a new key that seals everything.
	Rewrap(to strongbox.Target) error
	Rotate(secret []byte) error
}

// sealedRetry is how many seconds a client should wait when the site is sealed: a person
// has to do something.
const sealedRetry = "10"

// sealed returns the answer to an operation that a sealed site does not carry out. Who is
// on the site's machine may do what needs no secret.
func (s *server) sealed(route route, r *http.Request) error {
	if s.Strongbox == nil || route.unseals || !strings.HasPrefix(route.path, "/v1/") {
		return nil
	}
	if _, local := machineProof(r); local && route.unserved {
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

// errElsewhere is the answer to who is not on the site's machine.
var errElsewhere = problem(http.StatusForbidden, "", "", "what opens the strongbox and signs certificates is on the site's machine; run the command there, as root or as the user of the site")

// onlyOnMachine returns the handler of an operation for commands on the site's machine.
func onlyOnMachine(f func(*server, *call) error) func(*server, *call) error {
	return func(s *server, c *call) error {
		if !c.onMachine() {
			return errElsewhere
		}
		if s.Strongbox == nil {
			return problem(http.StatusNotFound, "", "", "this site has no strongbox")
		}
		return f(s, c)
	}
}

func (s *server) strongboxState() v1.Strongbox {
	state := v1.Strongbox{Way: string(s.Strongbox.Way()), Opener: s.Strongbox.Opener()}
	if err := s.Strongbox.Unaided(); err != nil {
		state.Sealed = err.Error()
	}
	return state
}

func (s *server) getStrongbox(c *call) error { return s.sendFields(c, s.strongboxState()) }

// prove opens the strongbox with what opens it now, if the site cannot do so by itself:
// whoever changes it has to know that.
func (s *server) prove(current string) ([]byte, error) {
	sealed := s.Strongbox.Unaided()
	if sealed == nil {
		return nil, nil
	}
	secret, err := base64.StdEncoding.DecodeString(current)
	if err != nil || len(secret) == 0 {
		return nil, cmp.Or(err, sealed)
	}
	if err = s.Strongbox.Prove(secret); err == nil {
		err = s.Strongbox.Unseal(secret)
	}
	if errors.Is(err, strongbox.ErrWrong) {
		err = problem(http.StatusForbidden, "current", "", "current: it does not open the strongbox; that takes %s", s.Strongbox.Opener())
	}
	return secret, err
}

// postRewrap changes what opens the strongbox.
func (s *server) postRewrap(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeRewrap(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	target := strongbox.Target{Way: strongbox.Way(wanted.Way), File: wanted.File, Name: wanted.Name}
	if target.Secret, err = base64.StdEncoding.DecodeString(wanted.Secret); err != nil {
		return err
	}
	if err := target.Check(); err != nil {
		return problem(http.StatusBadRequest, "way", "", "%s", err)
	}
	c.audit.Detail = "by " + wanted.Way
	if _, err := s.prove(wanted.Current); err != nil {
		return err
	}
	if err := s.Strongbox.Rewrap(target); err != nil {
		return problem(http.StatusConflict, "", "", "%s", err)
	}
	s.Log.Info("the strongbox is opened by something else", "by", c.who.Name, "opener", s.Strongbox.Opener())
	return s.sendFields(c, s.strongboxState())
}

// postRotateKey makes a new key that seals everything.
func (s *server) postRotateKey(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeCurrentSecret(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	secret, err := s.prove(wanted.Current)
	if err != nil {
		return err
	}
	if err := s.Strongbox.Rotate(secret); err != nil {
		return problem(http.StatusConflict, "", "", "%s", err)
	}
	s.Log.Info("the strongbox has a new key", "by", c.who.Name)
	return s.sendFields(c, s.strongboxState())
}

// postReset gives up what the strongbox seals.
func (s *server) postReset(c *call) error {
	if s.Maintenance.ResetStrongbox == nil {
		return problem(http.StatusConflict, "", "", "the site runs; stop it first")
	}
	aside, err := s.Maintenance.ResetStrongbox()
	if err != nil {
		return problem(http.StatusConflict, "", "", "%s", err)
	}
	return s.sendFields(c, v1.StrongboxReset{Aside: aside})
}

// postSiteCertificate makes a certificate of the site's own authority, and before it that.
func (s *server) postSiteCertificate(c *call) error {
	if s.Maintenance.Certify == nil {
		return problem(http.StatusNotFound, "", "", "this site makes no certificates")
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeNewSiteCertificate(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	c.audit.Detail = "a certificate for " + strings.Join(wanted.Names, ", ")
	if _, err := s.prove(wanted.Current); err != nil {
		return err
	}
	made, err := s.Maintenance.Certify(wanted.Names)
	if err != nil {
		return err
	}
	return s.sendFields(c, made)
}
