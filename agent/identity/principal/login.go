package principal

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
)

// The life of the token of a login: it is good for a while, which can be extended up to
// a last end.
const (
	userLife, userLast       = 12 * time.Hour, 14 * 24 * time.Hour
	approleLife, approleLast = 24 * time.Hour, 30 * 24 * time.Hour
)

// maxLogins is how many tokens of logins a user or an approle may have: the oldest goes.
const maxLogins = 1000

// Logins log users and approles in: who proves who it is gets a token.
type Logins struct {
	Users    *Users
	Approles *Approles
	tokens   *Tokens
	// most is maxLogins; tests have less.
	most int

	mu sync.Mutex
	// open are the ids of the tokens of each user and approle, the oldest first; nil before
	// they were looked up.
	open map[string][]string
}

// NewLogins returns the logins of users and approles, which get tokens.
func NewLogins(users *Users, approles *Approles, tokens *Tokens) *Logins {
	return &Logins{Users: users, Approles: approles, tokens: tokens, most: maxLogins}
}

// Session is the token of a login.
type Session struct {
	// Text is the token's text, which is not stored.
	Text string
	Token
}

// Sources are those from which somebody has proved who they are.
func (l *Logins) Sources() *Sources { return &l.Users.hasher.known }

// User logs a user in. from is the source that the request comes from, of which one at a
// time does not keep others waiting. The clock is read after the password was checked: the
// time that it waited for its turn does not shorten the life of the token.
func (l *Logins) User(ctx context.Context, from, tenant, name, password string, clock func() time.Time) (Session, error) {
	user, err := l.Users.prove(ctx, from, tenant, name, password)
	if err != nil {
		return Session{}, err
	}
	life, last := user.or(userLife, userLast)
	return l.begin(Token{Name: user.Name, Tenant: user.Tenant, Allow: user.Allow}, Login{Of: OfUser, Proof: user.proof()}, life, last, clock())
}

// Approle logs an approle in.
func (l *Logins) Approle(roleID, secretID string, now time.Time) (Session, error) {
	role, err := l.Approles.prove(roleID, secretID, now)
	if err != nil {
		return Session{}, err
	}
	life, last := role.or(approleLife, approleLast)
	return l.begin(Token{Name: role.Name, Tenant: role.Tenant, Allow: role.Allow}, Login{Of: OfApprole, Proof: role.RoleID}, life, last, now)
}

// begin makes the token of a login.
func (l *Logins) begin(token Token, login Login, life, last time.Duration, now time.Time) (Session, error) {
	now = now.UTC().Truncate(time.Microsecond)
	login.Renewed, login.Seconds, login.Until = now, int(life/time.Second), now.Add(last)
	end := now.Add(life)
	token.Login, token.Expires = &login, &end
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.lookUp(); err != nil {
		return Session{}, err
	}
	text, err := l.tokens.add(token, now)
	if err != nil {
		return Session{}, err
	}
	token.Made = &now
	owner := token.owner()
	l.open[owner] = append(l.open[owner], ID(text))
	if ids := l.open[owner]; len(ids) > l.most {
		if err := l.tokens.Remove(ids[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return Session{}, err
		}
		l.open[owner] = slices.Delete(ids, 0, 1)
	}
	return Session{Text: text, Token: token}, nil
}

// owner names the user or approle of a login.
func (t Token) owner() string { return t.Login.Of + " " + KeyOf(t.Tenant, t.Name) }

// lookUp finds the tokens of logins of before.
func (l *Logins) lookUp() error {
	if l.open != nil {
		return nil
	}
	all, err := l.tokens.List()
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b credential.Stored[Token]) int { return a.Made.Compare(b.Made) })
	l.open = map[string][]string{}
	for _, t := range all {
		if t.Damage == nil && t.Value.Login != nil {
			owner := t.Value.owner()
			l.open[owner] = append(l.open[owner], t.Key)
		}
	}
	return nil
}

// Current returns a token with the roles that its user or approle has now. A login ends with
// its user or approle, with the password, and with a role that it did not begin with: whoever
// made the user may have logged in as it, and would gain what others give it.
func (l *Logins) Current(token Token) (Token, error) {
	if token.Login == nil {
		return token, nil
	}
	began := token.Allow
	var proof string
	var err error
	if token.Login.Of == OfUser {
		var user User
		user, err = l.Users.Get(token.Tenant, token.Name)
		proof, token.Allow = user.proof(), user.Allow
	} else {
		var role Approle
		role, err = l.Approles.Get(token.Tenant, token.Name)
		proof, token.Allow = role.RoleID, role.Allow
	}
	added := func(role access.Role) bool { return !slices.Contains(began, role) }
	if err == nil && (proof != token.Login.Proof || slices.ContainsFunc(token.Allow, added)) {
		err = ErrEndedLogin
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrDamagedUser) || errors.Is(err, ErrDamagedApprole) {
		err = ErrEndedLogin
	}
	return token, err
}

// RemoveUser removes a user by its key, and withdraws the tokens of its logins;
// os.ErrNotExist if there is none.
func (l *Logins) RemoveUser(key string, permitted credential.Condition) error {
	if err := l.Users.remove(key, permitted); err != nil {
		return err
	}
	_, err := l.withdraw()
	return err
}

// RemoveApprole removes an approle by its key, and withdraws the tokens of its logins;
// os.ErrNotExist if there is none. Its secret-ids are good for nothing then, also for
// another approle of that name.
func (l *Logins) RemoveApprole(key string, permitted credential.Condition) error {
	if err := l.Approles.remove(key, permitted); err != nil {
		return err
	}
	_, err := l.withdraw()
	return err
}

// WriteUser is Users.Write, and withdraws the tokens of logins that end by it.
func (l *Logins) WriteUser(ctx context.Context, user User, password string, permitted credential.Condition, now time.Time) (User, error) {
	written, err := l.Users.Write(ctx, user, password, permitted, now)
	if err == nil {
		_, err = l.withdraw()
	}
	return written, err
}

// WriteApprole is Approles.Write, and withdraws the tokens of logins that end by it.
func (l *Logins) WriteApprole(role Approle, permitted credential.Condition, now time.Time) (Approle, error) {
	written, err := l.Approles.Write(role, permitted, now)
	if err == nil {
		_, err = l.withdraw()
	}
	return written, err
}

// withdraw removes and returns the tokens of logins that have ended. None of them is good
// any more; their event streams end by it.
func (l *Logins) withdraw() (ended []credential.Stored[Token], err error) {
	all, err := l.tokens.List()
	for _, t := range all {
		if t.Damage != nil || t.Value.Login == nil {
			continue
		}
		if _, why := l.Current(t.Value); !errors.Is(why, ErrEndedLogin) {
			continue
		}
		if removal := l.tokens.Remove(t.Key); !errors.Is(removal, os.ErrNotExist) {
			err = errors.Join(err, removal)
			ended = append(ended, t)
		}
	}
	return ended, err
}

// Refresh extends the life of the token of a login. Its text stays the same.
func (l *Logins) Refresh(text string, now time.Time) (Session, error) {
	id := ID(text)
	var renewed Token
	err := credential.Update(l.tokens.stored, id, func(body []byte) ([]byte, error) {
		token, err := decodeToken(id, body)
		switch {
		case err != nil:
			return nil, err
		case token.Login == nil:
			return nil, ErrNotRenewable
		case token.expired(now):
			return nil, ErrExpiredToken
		}
		now = now.UTC().Truncate(time.Microsecond)
		end := now.Add(time.Duration(token.Login.Seconds) * time.Second)
		if end.After(token.Login.Until) {
			end = token.Login.Until
		}
		token.Login.Renewed, token.Expires = now, &end
		renewed = token
		return encodeToken(id, token)
	})
	if errors.Is(err, os.ErrNotExist) {
		err = ErrUnknownToken
	}
	return Session{Text: text, Token: renewed}, err
}

// sweepEach is how often what has expired is removed.
const sweepEach = time.Hour

// Run removes the tokens of logins that have expired, and the secret-ids that are used up,
// until ctx ends. It also tells who watches the tokens that users have changed: somebody may
// have been let in as a user, without a token.
func (l *Logins) Run(ctx context.Context, log *slog.Logger) {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { l.Users.stored.Watch(ctx, l.tokens.changes.Notify) })
	var failing throttle.Failing
	for wait.Sleep(ctx, sweepEach) == nil {
		failing.Note(log, time.Now(), l.sweep(time.Now()), "cannot remove expired logins", "expired logins are removed again")
	}
}

func (l *Logins) sweep(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = nil // What was withdrawn meanwhile counts no more.
	all, err := l.tokens.List()
	for _, t := range all {
		if t.Damage != nil || t.Value.Login == nil || !t.Value.expired(now) {
			continue
		}
		if removal := l.tokens.Remove(t.Key); !errors.Is(removal, os.ErrNotExist) {
			err = errors.Join(err, removal)
		}
	}
	return errors.Join(err, l.Approles.sweep(now))
}
