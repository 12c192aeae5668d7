package api

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// login answers a login. A source from which too many have failed is not heard for a
// while; no other source is.
func (s *server) login(c *call, who string, prove func(from string) (principal.Session, error)) error {
	if s.Logins == nil {
		return errNoLogins
	}
	from := source(c.RemoteAddr)
	var session principal.Session
	err := s.logins.try(c.Context(), from, func() (failed bool, err error) {
		session, err = prove(from)
		if !errors.Is(err, principal.ErrWrongLogin) {
			return false, err
		}
		s.Log.Warn("a login has failed", "who", who, "from", from)
		return true, problem(http.StatusUnauthorized, "", "", "%s", err)
	})
	if err != nil {
		return err
	}
	s.Logins.Sources().Add(from)
	c.audit.Tenant, c.audit.Object = s.logOf(session.Tenant), "token/"+shortID(principal.ID(session.Text))
	c.auditBy(proofOf(session.Token, session.Text))
	s.Log.Info("logged in", "who", session.Name, "tenant", session.Tenant, "as", session.Login.Of, "from", from)
	s.sendSession(c, session)
	return nil
}

func (s *server) sendSession(c *call, session principal.Session) {
	id := principal.ID(session.Text)
	s.send(c.w, c.Request, http.StatusOK, v1.LoggedIn{
		Token: session.Text, ExpiresIn: int(session.Expires.Sub(session.Login.Renewed) / time.Second), Expires: v1.Microseconds(*session.Expires),
		Accessor:     fmt.Sprintf("%s-%s-%s-%s-%s", id[:8], id[8:12], id[12:16], id[16:20], id[20:32]),
		CreationTime: v1.Microseconds(*session.Made), RenewalTime: v1.Microseconds(session.Login.Renewed),
	})
}

// postLogin logs a user in.
func (s *server) postLogin(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeLogin(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	return s.login(c, fmt.Sprintf("%.63q", wanted.Username), func(from string) (principal.Session, error) {
		return s.Logins.User(c.Context(), from, wanted.Tenant, wanted.Username, wanted.Password, time.Now)
	})
}

// postApproleLogin logs an approle in.
func (s *server) postApproleLogin(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeApproleLogin(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	return s.login(c, "an approle", func(string) (principal.Session, error) {
		return s.Logins.Approle(wanted.RoleID, wanted.SecretID, time.Now())
	})
}

// postPassword gives the user of the request another password.
func (s *server) postPassword(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodePasswordChange(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	text, err := bearer(c.Request)
	if err != nil {
		return problem(http.StatusBadRequest, "", "", "%s", principal.ErrNoUser)
	}
	c.audit.Object = "user/" + c.who.Name
	var user principal.User
	var withdrawn []credential.Stored[principal.Token]
	from := source(c.RemoteAddr)
	err = s.logins.try(c.Context(), from, func() (failed bool, err error) {
		user, withdrawn, err = s.Logins.ChangePassword(c.Context(), from, text, wanted.Current, wanted.Password, time.Now())
		return errors.Is(err, principal.ErrWrongPassword), err
	})
	switch {
	case errors.Is(err, principal.ErrNoUser):
		return problem(http.StatusBadRequest, "", "", "%s", err)
	case errors.Is(err, principal.ErrWrongPassword):
		s.Log.Warn("a password is not changed: the current one is wrong", "user", c.who.Name, "from", from)
		return problem(http.StatusForbidden, "current-password", "", "%s", err)
	case errors.Is(err, credential.ErrChanged):
		return problem(http.StatusConflict, "", "", "the user was changed meanwhile; try again")
	case err != nil:
		return unauthorized(err)
	}
	ids := []string{}
	for _, t := range withdrawn {
		ids = append(ids, shortID(t.Key))
	}
	c.audit.After, c.audit.Detail = recordedRevision(revisionOf(user.Revision)), "logins withdrawn: "+cmp.Or(strings.Join(ids, " "), "none")
	s.Log.Info("password changed", "tenant", user.Tenant, "user", user.Name, "from", from, "withdrawn", ids)
	s.send(c.w, c.Request, http.StatusOK, v1.PasswordChanged{Name: user.Name, PasswordSet: user.Since, Withdrawn: shownAs(withdrawn, shownToken)})
	return nil
}

// postRefresh extends the life of the token of the request.
func (s *server) postRefresh(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	if text := bytes.TrimSpace(body); len(text) > 0 && !bytes.Equal(text, []byte("{}")) {
		return problem(http.StatusBadRequest, "", "", "a refresh has no body; leave it out")
	}
	text, err := bearer(c.Request)
	if err != nil || s.Logins == nil {
		return unauthorized(cmp.Or(err, principal.ErrUnknownToken))
	}
	c.audit.Object = "token/" + shortID(principal.ID(text))
	session, err := s.Logins.Refresh(text, time.Now())
	if errors.Is(err, principal.ErrNotRenewable) {
		return problem(http.StatusBadRequest, "", "", "%s", err)
	}
	if err != nil {
		return unauthorized(err)
	}
	s.sendSession(c, session)
	return nil
}
