package api

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func shownToken(stored credential.Stored[principal.Token]) v1.Token {
	t := stored.Value
	shown := v1.Token{ID: stored.Key, Name: t.Name, Tenant: t.Tenant, Allow: t.Allow, CreationTime: stored.Made.UTC().Truncate(time.Second), Expires: t.Expires}
	if t.Login != nil {
		shown.Login = t.Login.Of
	}
	if !t.Used.IsZero() {
		shown.LastUsed = &t.Used
	}
	return shown
}

// tokens returns the tokens of a tenant. A damaged one is nobody's: the command line on
// the site's machine lists it.
func (s *server) tokens(tenant string) ([]v1.Token, error) {
	all, err := s.Tokens.List()
	if err != nil {
		return nil, err
	}
	listed := []v1.Token{}
	for _, t := range all {
		if t.Damage == nil && t.Value.Tenant == tenant {
			listed = append(listed, shownToken(t))
		}
	}
	return listed, nil
}

// tokenAt returns the token that the path of a request names. One of another tenant is
// not there.
func (s *server) tokenAt(c *call) (v1.Token, error) {
	all, err := s.tokens(c.tenant)
	if err != nil {
		return v1.Token{}, err
	}
	id := c.PathValue("id")
	for _, t := range all {
		if t.ID == id {
			return t, nil
		}
	}
	return v1.Token{}, noToken(c.tenant, id)
}

func noToken(tenant, id string) error {
	return problem(http.StatusNotFound, "id", id, "tenant %q has no token %.70q", tenant, id)
}

func (s *server) getTokens(c *call) error {
	listed, err := s.tokens(c.tenant)
	if err != nil {
		return err
	}
	return sendList(s, c, listed, func(t v1.Token) string { return t.ID })
}

func (s *server) getToken(c *call) error {
	token, err := s.tokenAt(c)
	if err != nil {
		return err
	}
	return s.sendFields(c, token)
}

// postToken makes a token.
func (s *server) postToken(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeNewToken(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	valid, err := wanted.Duration()
	if err != nil {
		return err
	}
	token := principal.Token{Name: wanted.Name, Tenant: c.tenant, Allow: wanted.Allow}
	if valid > 0 {
		end := time.Now().Add(valid).UTC().Truncate(time.Second)
		token.Expires = &end
	}
	if err := token.Check(); err != nil {
		return err
	}
	if err := s.mayGive(c, "allow", token.Allow); err != nil {
		return err
	}
	text, err := s.Tokens.Add(token)
	if err != nil {
		return err
	}
	return s.sendNewToken(c, "made", text)
}

// sendNewToken answers with a token that was made, with its text.
func (s *server) sendNewToken(c *call, what, text string) error {
	id := principal.ID(text)
	c.audit.Object = "token/" + shortID(id)
	token, err := s.Tokens.Get(id)
	if err != nil {
		return err
	}
	c.audit.Detail = strings.TrimPrefix(c.audit.Detail+", "+token.About(), ", ")
	s.Log.Info("token "+what, "tenant", c.tenant, "by", c.who.Name, "id", id[:12], "name", token.Name, "allow", token.Allow)
	made := shownToken(credential.Stored[principal.Token]{Key: id, Made: *token.Made, Value: token})
	made.Token = text
	c.w.Header().Set("Location", "/v1/state/tenants/"+c.tenant+"/strongbox/tokens/"+made.ID)
	s.send(c.w, c.Request, http.StatusCreated, made)
	return nil
}

// deleteToken withdraws a token: the next request with it is refused, and its streams end.
func (s *server) deleteToken(c *call) error {
	token, err := s.tokenAt(c)
	if err != nil {
		return err
	}
	if err := s.Tokens.Remove(token.ID); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	c.audit.Detail = "name " + token.Name
	s.Log.Info("token withdrawn", "tenant", c.tenant, "by", c.who.Name, "id", token.ID[:12], "name", token.Name)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// postRotate makes a token in place of another.
func (s *server) postRotate(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeRotation(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	overlap, err := wanted.Duration()
	if err != nil {
		return err
	}
	token, err := s.tokenAt(c)
	if err != nil {
		return err
	}
	if err := s.mayGive(c, "id", token.Allow); err != nil {
		return err
	}
	c.audit.Detail = "in place of token/" + shortID(token.ID)
	text, err := s.Tokens.Rotate(token.ID, overlap, time.Now())
	switch {
	case errors.Is(err, os.ErrNotExist):
		return noToken(c.tenant, token.ID)
	case errors.Is(err, principal.ErrExpiredToken):
		return problem(http.StatusConflict, "id", token.ID, "token %.12s has expired, and its successor would have too; make a new one", token.ID)
	case errors.Is(err, principal.ErrLoginToken):
		return problem(http.StatusConflict, "id", token.ID, "%s", err)
	case err != nil:
		return err
	}
	return s.sendNewToken(c, "rotated", text)
}
