package fakeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// SessionToken is how the token of each login begins. A test can look for it in whatever
// was written.
const SessionToken = "fakeapi-session-"

// logins are who may log in, and the tokens of who has. Server.mu guards them.
type logins struct {
	// passwords are those of users, by name.
	passwords map[string]string
	approles  map[string]*approle
	// sessions are the tokens of logins that are good, with their end.
	sessions map[string]time.Time
	// life is how long a token is good after a login or a refresh.
	life time.Duration
	made int
}

// approle is a role with its one secret-id.
type approle struct {
	secretID string
	// left is how many logins are left; negative for any number.
	left int
}

func newLogins() logins {
	return logins{passwords: map[string]string{}, approles: map[string]*approle{}, sessions: map[string]time.Time{}, life: time.Hour}
}

// SetUser makes a user, or gives one another password.
func (s *Server) SetUser(name, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins.passwords[name] = password
}

// SetApprole makes an approle with a secret-id that is good for so many logins; a negative
// number is for any.
func (s *Server) SetApprole(roleID, secretID string, uses int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins.approles[roleID] = &approle{secretID: secretID, left: uses}
}

// SessionLife sets how long the token of a login is good.
func (s *Server) SessionLife(life time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins.life = life
}

// EndSessions withdraws the token of each login.
func (s *Server) EndSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins.sessions = map[string]time.Time{}
}

// Logins is how many logins had success.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins.made
}

// lets reports whether a request has a good token.
func (s *Server) lets(r *http.Request) bool {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	end, session := s.logins.sessions[token]
	return found && (token == Token || session && time.Now().Before(end))
}

func (s *Server) postLogin(w http.ResponseWriter, r *http.Request) {
	var login v1.Login
	if json.NewDecoder(r.Body).Decode(&login) != nil || login.Username == "" || login.Password == "" {
		refuse(w, http.StatusBadRequest, v1.Error{Message: "the body is no login"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	password, known := s.logins.passwords[login.Username]
	s.begin(w, known && password == login.Password)
}

func (s *Server) postApproleLogin(w http.ResponseWriter, r *http.Request) {
	var login v1.ApproleLogin
	if json.NewDecoder(r.Body).Decode(&login) != nil || login.SecretID == "" {
		refuse(w, http.StatusBadRequest, v1.Error{Message: "the body is no login"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	role := s.logins.approles[login.RoleID]
	right := role != nil && role.secretID == login.SecretID && role.left != 0
	if right {
		role.left--
	}
	s.begin(w, right)
}

// begin answers a login; s.mu is held.
func (s *Server) begin(w http.ResponseWriter, right bool) {
	if !right {
		refuse(w, http.StatusUnauthorized, v1.Error{Message: "the login is wrong"})
		return
	}
	s.logins.made++
	s.sendSession(w, fmt.Sprintf("%s%d-2b7e", SessionToken, s.logins.made))
}

// postRefresh gives a token as much life as a login. Avassa's server may give another token.
func (s *Server) postRefresh(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, session := s.logins.sessions[token]; !session {
		refuse(w, http.StatusBadRequest, v1.Error{Message: "the token is not that of a login"})
		return
	}
	if s.behave.avassa {
		delete(s.logins.sessions, token)
		token += "-r"
	}
	s.sendSession(w, token)
}

// sendSession sends the token of a login in the form of the server: that of Avassa has
// another opinion in each of its members (avassa.md 1.2). s.mu is held.
func (s *Server) sendSession(w http.ResponseWriter, token string) {
	now := time.Now().UTC()
	end := now.Add(s.logins.life)
	s.logins.sessions[token] = end
	body := map[string]any{
		"token": token, "expires-in": int(s.logins.life / time.Second), "expires": v1.Microseconds(end), "accessor": "8f14e45f-ceea-467f-a0e6-b1c2d3e4f506",
		"creation-time": v1.Microseconds(now), "renewal-time": v1.Microseconds(now),
	}
	if s.behave.avassa {
		body["expires-in"], body["disabled"] = 1209600, false
		body["totp-required"], body["passkey-required"] = false, false
	}
	answer(w, http.StatusOK, body)
}
