package principal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

const right = "correct horse"

func atNoon() time.Time { return noon }

// kept is what a site keeps of logins.
type kept struct{ tokens, beside, users, approles, secrets credentialtest.Memory }

// open returns the logins as a site has them that has just started.
func (k *kept) open() *Logins {
	return NewLogins(NewUsers(&k.users), NewApproles(&k.approles, &k.secrets), NewTokens(&k.tokens, &k.beside))
}

func openLogins() (*Logins, *kept) {
	k := &kept{}
	return k.open(), k
}

func (l *Logins) put(t *testing.T, tenant, name string, now time.Time, allow ...access.Role) {
	t.Helper()
	if _, err := l.WriteUser(t.Context(), User{Tenant: tenant, Name: name, Allow: allow}, right, nil, now); err != nil {
		t.Fatal(err)
	}
}

// approle makes the approle tf, or gives it other roles.
func (l *Logins) approle(t *testing.T, allow ...access.Role) Approle {
	t.Helper()
	role, err := l.Approles.Write(Approle{Tenant: "acme", Name: "tf", Allow: allow}, nil, noon)
	if err != nil {
		t.Fatal(err)
	}
	return role
}

// TestUserLogin checks who is logged in, and that whatever is wrong gets the same answer.
func TestUserLogin(t *testing.T) {
	t.Parallel()
	l, _ := openLogins()
	l.put(t, "acme", "ann", noon, access.Operator)
	l.put(t, "acme", "bob", noon, access.Viewer)
	l.put(t, "beta", "bob", noon, access.Admin)
	l.put(t, access.AnyTenant, "admin", noon, access.Admin)
	for name, row := range map[string]struct {
		tenant, user, password string
		want                   error
		of                     string
	}{
		"with the tenant":              {"acme", "ann", right, nil, "acme"},
		"without the tenant":           {"", "ann", right, nil, "acme"},
		"of all tenants":               {"", "admin", right, nil, "*"},
		"of all tenants, named":        {"*", "admin", right, nil, "*"},
		"a wrong password":             {"acme", "ann", "wrong", ErrWrongLogin, ""},
		"no password":                  {"acme", "ann", "", ErrWrongLogin, ""},
		"nobody":                       {"acme", "eve", right, ErrWrongLogin, ""},
		"of another tenant":            {"beta", "ann", right, ErrWrongLogin, ""},
		"of two tenants":               {"", "bob", right, ErrWrongLogin, ""},
		"one of two tenants":           {"beta", "bob", right, nil, "beta"},
		"of all, in one":               {"acme", "admin", right, ErrWrongLogin, ""},
		"a name that is a path":        {"acme", "../tokens/x", right, ErrWrongLogin, ""},
		"a tenant that is a path":      {"../x", "ann", right, ErrWrongLogin, ""},
		"a tenant within the name":     {"", "acme.ann", right, ErrWrongLogin, ""},
		"the name of another as a key": {"_", "admin", right, ErrWrongLogin, ""},
	} {
		session, err := l.User(t.Context(), "here", row.tenant, row.user, row.password, atNoon)
		if !errors.Is(err, row.want) || session.Tenant != row.of {
			t.Errorf("%s: %+v, %v", name, session.Token, err)
		}
	}
}

// written returns a change of user ann of acme to a password and roles.
func written(password string, allow ...access.Role) func(*testing.T, *Logins) {
	return func(t *testing.T, l *Logins) {
		t.Helper()
		if _, err := l.WriteUser(t.Context(), User{Tenant: "acme", Name: "ann", Allow: allow}, password, nil, noon.Add(time.Microsecond)); err != nil {
			t.Fatal(err)
		}
	}
}

// stored is written by a process that ends before it withdraws tokens.
func stored(password string, allow ...access.Role) func(*testing.T, *Logins) {
	return func(t *testing.T, l *Logins) {
		t.Helper()
		if _, err := l.Users.Write(t.Context(), User{Tenant: "acme", Name: "ann", Allow: allow}, password, nil, noon.Add(time.Microsecond)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLifeOfALogin checks that a token is good for its whole life, however long the password
// waited for its turn.
func TestLifeOfALogin(t *testing.T) {
	t.Parallel()
	l, _ := openLogins()
	l.put(t, "acme", "ann", time.Now(), access.Operator)
	synctest.Test(t, func(t *testing.T) {
		const wait = 4 * time.Second
		hasher := newHasher()
		l.Users.hasher = hasher
		for range cap(hasher.slots) {
			hasher.slots <- struct{}{} // Others are being checked.
		}
		time.AfterFunc(wait, func() { <-hasher.slots })
		begun := time.Now()
		session, err := l.User(t.Context(), "here", "acme", "ann", right, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if now := time.Now(); now.Sub(begun) != wait || !session.Made.Equal(now) || !session.Login.Renewed.Equal(now) || !session.Expires.Equal(now.Add(userLife)) || !session.Login.Until.Equal(now.Add(userLast)) {
			t.Errorf("after %s the token is made at %s and good until %s", now.Sub(begun), session.Made, session.Expires)
		}
		synctest.Wait()
	})
}

// TestEndOfLogins checks what a token of a login follows: the roles of its user, its
// password, and its end.
func TestEndOfLogins(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*testing.T, *Logins)
		want   error
		roles  []access.Role
	}{
		"nothing happens": {func(*testing.T, *Logins) {}, nil, []access.Role{access.Operator, access.Viewer}},
		"the password is set": {func(t *testing.T, l *Logins) {
			t.Helper()
			l.put(t, "acme", "ann", noon.Add(time.Microsecond), access.Operator)
		}, ErrUnknownToken, nil},
		"the password is set, and the process ends before the tokens are withdrawn": {stored("another one", access.Operator), ErrEndedLogin, nil},
		"the user is removed": {func(t *testing.T, l *Logins) {
			t.Helper()
			if err := l.RemoveUser(KeyOf("acme", "ann"), nil); err != nil {
				t.Fatal(err)
			}
		}, ErrUnknownToken, nil},
		"the file of the user is removed": {func(t *testing.T, l *Logins) {
			t.Helper()
			if err := l.Users.remove(KeyOf("acme", "ann"), nil); err != nil {
				t.Fatal(err)
			}
		}, ErrEndedLogin, nil},
		"another password by the API": {written("another one", access.Operator), ErrUnknownToken, nil},
		"more roles":                  {written("", access.Operator, access.Admin), ErrUnknownToken, nil},
		"more roles, and the process ends before the tokens are withdrawn": {stored("", access.Admin), ErrEndedLogin, nil},
		"fewer roles": {written("", access.Viewer), nil, []access.Role{access.Viewer}},
		"another of its name": {func(t *testing.T, l *Logins) {
			t.Helper()
			if err := l.Users.remove(KeyOf("acme", "ann"), nil); err != nil {
				t.Fatal(err)
			}
			l.put(t, "acme", "ann", noon.Add(time.Hour), access.Admin)
		}, ErrUnknownToken, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := openLogins()
			l.put(t, "acme", "ann", noon, access.Operator, access.Viewer)
			session, err := l.User(t.Context(), "here", "", "ann", right, atNoon)
			if err != nil {
				t.Fatal(err)
			}
			row.change(t, l)
			token, err := l.tokens.Find(session.Text, noon.Add(time.Hour))
			if err == nil {
				token, err = l.Current(token)
			}
			if !errors.Is(err, row.want) || err == nil && !slices.Equal(token.Allow, row.roles) {
				t.Errorf("it has %v, %v", token.Allow, err)
			}
			if _, err := l.tokens.Find(session.Text, noon.Add(userLife)); !errors.Is(err, ErrExpiredToken) && !errors.Is(row.want, ErrUnknownToken) {
				t.Errorf("at its end: %v", err)
			}
		})
	}
}

// TestRefresh checks that a token lives on as long as it is refreshed, up to its last end,
// and not once it was withdrawn.
func TestRefresh(t *testing.T) {
	t.Parallel()
	l, _ := openLogins()
	l.put(t, "acme", "ann", noon, access.Operator)
	session, err := l.User(t.Context(), "here", "", "ann", right, atNoon)
	if err != nil {
		t.Fatal(err)
	}
	now := noon
	for range 40 {
		now = now.Add(userLife - time.Minute)
		renewed, err := l.Refresh(session.Text, now)
		if now.After(noon.Add(userLast)) {
			if !errors.Is(err, ErrExpiredToken) {
				t.Fatalf("after its last end: %v", err)
			}
			continue
		}
		if err != nil || renewed.Text != session.Text || renewed.Expires.After(noon.Add(userLast)) || !renewed.Login.Renewed.Equal(now) || !renewed.Made.Equal(noon) {
			t.Fatalf("%s after the login: %+v, %v", now.Sub(noon), renewed.Token, err)
		}
	}
	other, err := l.User(t.Context(), "here", "", "ann", right, atNoon)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.tokens.Remove(ID(other.Text)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Refresh(other.Text, noon); !errors.Is(err, ErrUnknownToken) {
		t.Errorf("a withdrawn token is refreshed: %v", err)
	}
	if _, err := l.Refresh(add(t, l.tokens, Token{Name: "ci", Tenant: "acme"}), noon); !errors.Is(err, ErrNotRenewable) {
		t.Errorf("a token of no login is refreshed: %v", err)
	}
	if _, err := l.tokens.Rotate(ID(session.Text), 0, noon); !errors.Is(err, ErrLoginToken) {
		t.Errorf("the token of a login is rotated: %v", err)
	}
	if err := l.sweep(noon.Add(userLast)); err != nil {
		t.Fatal(err)
	}
	if all, err := l.tokens.List(); err != nil || len(all) != 1 || all[0].Value.Name != "ci" {
		t.Errorf("after the sweep there are %+v, %v", all, err)
	}
}

// TestApproleLogin checks that a secret-id is good for its uses and its time, by its
// role-id or without one, and for its approle alone.
func TestApproleLogin(t *testing.T) {
	t.Parallel()
	l, k := openLogins()
	role := l.approle(t, access.Writes)
	secret := func(uses int, valid time.Duration) string {
		text, err := l.Approles.AddSecret(role, uses, valid, noon)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	try := func(roleID, text string, at time.Time, want error) {
		t.Helper()
		session, err := l.Approle(roleID, text, at)
		if !errors.Is(err, want) || err == nil && (session.Name != "tf" || session.Tenant != "acme") {
			t.Errorf("%+v, %v", session.Token, err)
		}
	}
	once, many, hour := secret(1, 0), secret(0, 0), secret(5, time.Hour)
	try("wrong", once, noon, ErrWrongLogin)
	try(role.RoleID, once, noon, nil)
	try(role.RoleID, once, noon, ErrWrongLogin)
	for range 5 {
		try(many, many, noon.Add(1000*time.Hour), nil)
	}
	try(hour, hour, noon.Add(time.Hour-1), nil)
	try(hour, hour, noon.Add(time.Hour), ErrWrongLogin)
	try(role.RoleID, "osus_00", noon, ErrWrongLogin)
	session, err := l.Approle(many, many, noon)
	if err != nil {
		t.Fatal(err)
	}
	l.approle(t, access.Viewer)
	if token, err := l.Current(session.Token); !errors.Is(err, ErrEndedLogin) {
		t.Errorf("with other roles: %+v, %v", token, err)
	}
	if err := l.sweep(noon.Add(time.Hour + 1)); err != nil {
		t.Fatal(err)
	}
	if left, err := k.secrets.List(); err != nil || len(left) != 1 {
		t.Errorf("after the sweep there are %d secret-ids, %v", len(left), err)
	}
	if err := l.RemoveApprole(KeyOf("acme", "tf"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Current(session.Token); !errors.Is(err, ErrEndedLogin) {
		t.Errorf("the approle is removed: %v", err)
	}
	l.approle(t, access.Admin)
	if _, err := l.Current(session.Token); !errors.Is(err, ErrEndedLogin) {
		t.Errorf("there is another approle of that name: %v", err)
	}
	try(many, many, noon, ErrWrongLogin)
}

// TestOneUse checks that a secret-id of one use lets one of many in that use it at once.
func TestOneUse(t *testing.T) {
	t.Parallel()
	l, _ := openLogins()
	role := l.approle(t, access.Writes)
	text, err := l.Approles.AddSecret(role, 1, 0, noon)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	in := make(chan struct{}, 20)
	for range 20 {
		all.Go(func() {
			if _, err := l.Approle(text, text, noon); err == nil {
				in <- struct{}{}
			}
		})
	}
	all.Wait()
	if len(in) != 1 {
		t.Errorf("%d were let in", len(in))
	}
}

// TestManyLogins checks that the oldest token of a user goes when it has too many, also of
// those before a restart, and none of another user.
func TestManyLogins(t *testing.T) {
	t.Parallel()
	l, k := openLogins()
	role := l.approle(t, access.Writes)
	text, err := l.Approles.AddSecret(role, 0, 0, noon)
	if err != nil {
		t.Fatal(err)
	}
	l.put(t, "acme", "tf", noon, access.Viewer)
	user, err := l.User(t.Context(), "", "", "tf", right, atNoon)
	if err != nil {
		t.Fatal(err)
	}
	var first, second Session
	const most = 10
	l.most = most
	for i := range most + 1 {
		if i == most { // The site is started again.
			l = k.open()
			l.most = most
		}
		session, err := l.Approle(text, text, noon.Add(time.Duration(i)*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		switch i {
		case 0:
			first = session
		case 1:
			second = session
		}
	}
	for name, row := range map[string]struct {
		session Session
		want    error
	}{"the oldest": {first, ErrUnknownToken}, "the next": {second, nil}, "of the user": {user, nil}} {
		if _, err := l.tokens.Find(row.session.Text, noon.Add(time.Minute)); !errors.Is(err, row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWaiting checks that one source takes no turn of another, and that what waits is
// bounded.
func TestWaiting(t *testing.T) {
	t.Parallel()
	h := newHasher()
	for range cap(h.slots) {
		h.slots <- struct{}{} // Somebody is being checked.
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	wait := func(from string) { all.Go(func() { _ = h.turn(ctx, from, func() {}) }) }
	waiting := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.total[false]
	}
	settle := func(want int) {
		t.Helper()
		for begun := time.Now(); waiting() != want; {
			if time.Since(begun) > maxWait/2 {
				t.Fatalf("%d wait, want %d", waiting(), want)
			}
			time.Sleep(time.Millisecond)
		}
	}
	for range maxWaitingEach {
		wait("one")
	}
	settle(maxWaitingEach)
	if err := h.turn(ctx, "one", func() {}); !errors.Is(err, ErrBusy) {
		t.Errorf("one source has more turns than it may: %v", err)
	}
	for i := range maxWaiting - maxWaitingEach {
		wait(fmt.Sprint(i))
	}
	settle(maxWaiting)
	if err := h.turn(ctx, "another", func() {}); !errors.Is(err, ErrBusy) {
		t.Errorf("more wait than may: %v", err)
	}
	stop()
	all.Wait()
	if waiting() != 0 || len(h.waiting) != 0 {
		t.Errorf("%d still wait, from %d sources", waiting(), len(h.waiting))
	}
}

// TestKnownSources checks that a source from which somebody has logged in gets its turn soon,
// however many other sources try, and that other sources get theirs while many known ones try.
func TestKnownSources(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		floods string // Where the source that floods begins.
		from   string
		most   time.Duration
	}{
		"a known source beside unknown ones":  {"unknown", "known", 3 * 2 * hashing},
		"an unknown source beside known ones": {"known", "unknown", (maxWaiting + 2) * 2 * hashing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHasher()
				h.slots = make(chan struct{}, 1)
				for i := range 100 {
					h.known.Add(fmt.Sprint("known", i))
				}
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for i := range 99 {
					all.Go(func() {
						for ctx.Err() == nil {
							_ = h.turn(ctx, fmt.Sprint(row.floods, i), func() { time.Sleep(hashing) })
							time.Sleep(time.Millisecond)
						}
					})
				}
				time.Sleep(time.Minute)
				for range 20 {
					begun := time.Now()
					err := h.turn(ctx, row.from+"99", func() { time.Sleep(hashing) })
					if took := time.Since(begun); err != nil || took > row.most {
						t.Errorf("after %s: %v; it should take %s at most", took, err, row.most)
					}
					time.Sleep(time.Second)
				}
				stop()
				all.Wait()
				time.Sleep(maxRest)
			})
		})
	}
}

// hashing is how long a password takes in tests.
const hashing = 30 * time.Millisecond

// TestSources checks that the sources are bounded, and that the one not seen for longest goes.
func TestSources(t *testing.T) {
	t.Parallel()
	var p Sources
	for i := range maxSources {
		p.Add(fmt.Sprint(i))
	}
	p.Add("0")
	p.Add("one more")
	if !p.Has("0") || p.Has("1") || !p.Has("2") || !p.Has("one more") || p.Has("never") || len(p.seen) != maxSources {
		t.Errorf("%d sources are remembered; the first %v, the second %v, the last %v", len(p.seen), p.Has("0"), p.Has("1"), p.Has("one more"))
	}
}

// TestHash checks that only the password is right, and that a hash that was changed costs
// nothing.
func TestHash(t *testing.T) {
	t.Parallel()
	h := newHasher()
	stored, err := h.hash(t.Context(), "", right)
	if err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]bool{right: true, right + " ": false, "": false, strings.ToUpper(right): false} {
		if got, err := h.verify(t.Context(), "", stored, password); err != nil || got != want {
			t.Errorf("%q: %t, %v", password, got, err)
		}
	}
	if got, err := h.verify(t.Context(), "", nobody, right); err != nil || got {
		t.Errorf("nobody: %t, %v", got, err)
	}
	for _, change := range [][2]string{{"m=19456", "m=4294967"}, {"t=2", "t=99999"}, {"p=1", "p=255"}, {"argon2id", "argon2i"}, {"v=19", "v=16"}, {"t=2", "t=-1"}, {"$m", "m"}} {
		if _, err := h.verify(t.Context(), "", strings.Replace(stored, change[0], change[1], 1), right); !errors.Is(err, errDamagedHash) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// TestWrongUsers checks which users and approles are not made.
func TestWrongUsers(t *testing.T) {
	t.Parallel()
	l, _ := openLogins()
	viewer := []access.Role{access.Viewer}
	for want, row := range map[string]struct {
		tenant, name, password string
		allow                  []access.Role
	}{
		`name: "" is invalid`:              {"acme", "", right, viewer},
		`name: "../x" is invalid`:          {"acme", "../x", right, viewer},
		`name: "Ann" is invalid`:           {"acme", "Ann", right, viewer},
		`tenant: "a.b" is not the name`:    {"a.b", "ann", right, viewer},
		`allow: without a role`:            {"acme", "ann", right, nil},
		`allow: "Root" is the name of nei`: {"acme", "ann", right, []access.Role{"Root"}},
		`password: it is too short`:        {"acme", "ann", "sesame", viewer},
		`password: it is too short or too`: {"acme", "ann", strings.Repeat("x", maxPassword+1), viewer},
	} {
		if _, err := l.WriteUser(t.Context(), User{Tenant: row.tenant, Name: row.name, Allow: row.allow}, row.password, nil, noon); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), row.password) {
			t.Errorf("%s: %v", want, err)
		}
		if _, err := l.Approles.Write(Approle{Tenant: row.tenant, Name: row.name, Allow: row.allow}, nil, noon); strings.HasPrefix(want, "password") != (err == nil) {
			t.Errorf("approle, %s: %v", want, err)
		}
	}
	first, err1 := NewPassword()
	second, err2 := NewPassword()
	if err := errors.Join(err1, err2); err != nil || first == second || len(first) != 17 {
		t.Errorf("the passwords are %s and %s, %v", first, second, err)
	}
}

// TestLoginFormats checks that users, approles, secret-ids and tokens of logins are stored
// as they were, and that none is good as another's or after a change.
func TestLoginFormats(t *testing.T) {
	t.Parallel()
	user := User{Tenant: "acme", Name: "ann", Allow: []access.Role{access.Viewer}, Hash: nobody, Since: noon}
	role := Approle{Tenant: "acme", Name: "tf", Allow: []access.Role{access.Writes}, RoleID: "6f1f2d3c-0000-4000-8000-000000000001", Since: noon}
	left, end := 2, noon.Add(time.Hour)
	secret := SecretID{Tenant: "acme", Approle: "tf", RoleID: role.RoleID, Left: &left, Expires: &end}
	token := Token{
		Name: "ann", Tenant: "acme", Allow: user.Allow, Expires: &end, Made: &user.Since,
		Login: &Login{Of: OfUser, Proof: user.proof(), Renewed: noon, Seconds: 3600, Until: end},
	}
	encode := func(kind format.Kind, key string, value any, file func(sum string) any) []byte {
		sum, err := sumOf(key, value)
		if err != nil {
			t.Fatal(err)
		}
		body, err := kind.Encode(file(sum))
		if err != nil {
			t.Fatal(err)
		}
		return append(body, '\n')
	}
	tokenBody, err := encodeToken("0a", token)
	if err != nil {
		t.Fatal(err)
	}
	secretBody, err := encodeSecret("0a", secret)
	if err != nil {
		t.Fatal(err)
	}
	put := func(stored credential.Store, key string, body []byte) {
		if err := credential.Put(stored, key, body); err != nil {
			t.Error(err)
		}
	}
	for name, row := range map[string]struct {
		key, other string
		body       []byte
		read       func(k *kept, key string, body []byte) error
	}{
		"user": {"acme.ann", "beta.ann", encode(format.User, "acme.ann", user, func(sum string) any { return userFile{user, sum} }), func(k *kept, key string, body []byte) error {
			put(&k.users, key, body)
			_, err := k.open().Users.read.Get(key)
			return err
		}},
		"approle": {"acme.tf", "beta.tf", encode(format.Approle, "acme.tf", role, func(sum string) any { return approleFile{role, sum} }), func(k *kept, key string, body []byte) error {
			put(&k.approles, key, body)
			_, err := k.open().Approles.read.Get(key)
			return err
		}},
		"secret-id": {"0a", "0b", secretBody, func(_ *kept, key string, body []byte) error {
			_, err := decodeSecret(key, body)
			return err
		}},
		"login": {"0a", "0b", tokenBody, func(_ *kept, key string, body []byte) error {
			_, err := decodeToken(key, body)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &kept{}
			body := formattest.Golden(t, "testdata/format1/"+name+".json", row.body)
			read := func(key string, body []byte) error { return row.read(k, key, body) }
			if err := read(row.key, body); err != nil {
				t.Errorf("%s: %v", body, err)
			}
			if err := read(row.other, body); err == nil {
				t.Error("it is good as another's")
			}
			if err := read(row.key, bytes.Replace(body, []byte(`"acme"`), []byte(`"beta"`), 1)); err == nil || format.IsUnsupported(err) {
				t.Errorf("with another tenant: %v", err)
			}
			if err := read(row.key, body[:len(body)/2]); err == nil || format.IsUnsupported(err) {
				t.Errorf("cut short: %v", err)
			}
			if err := read(row.key, bytes.Replace(body, []byte(`"format":1`), []byte(`"format":2`), 1)); !format.IsUnsupported(err) {
				t.Errorf("of a newer format: %v", err)
			}
		})
	}
}

// TestHasherRests checks that passwords take half of the time of a processor at most, however
// many wait, and that nobody waits for the rest after the own one.
func TestHasherRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hash, all = 50 * time.Millisecond, 10
		h, begun := newHasher(), time.Now()
		h.slots = make(chan struct{}, 1)
		var waiting sync.WaitGroup
		var mu sync.Mutex
		var ends []time.Duration
		for source := range all {
			waiting.Go(func() {
				if err := h.turn(t.Context(), fmt.Sprint(source), func() { time.Sleep(hash) }); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				ends = append(ends, time.Since(begun))
			})
		}
		waiting.Wait()
		for n, end := range ends {
			if want := time.Duration(n)*2*hash + hash; end != want {
				t.Errorf("password %d is checked after %s; want %s", n+1, end, want)
			}
		}
		time.Sleep(hash)
		synctest.Wait()
	})
}

// TestOfTenant checks that the list of a tenant's users has those of that tenant alone, by
// name, and neither damaged ones nor those of a tenant whose name begins alike.
func TestOfTenant(t *testing.T) {
	t.Parallel()
	stored := &credentialtest.Memory{}
	users := NewUsers(stored)
	for _, key := range []string{"acme.b", "acme.a.b", "acme.a", "acme.a-b", "acme.broken", "acme-2.x", "_.x"} {
		tenant, name, _ := strings.Cut(key, ".")
		if tenant == "_" {
			tenant = access.AnyTenant
		}
		body, err := encodeUser(key, User{Tenant: tenant, Name: name, Allow: []access.Role{access.Viewer}, Hash: nobody})
		if key == "acme.broken" {
			body = []byte("{}")
		}
		if err == nil {
			err = credential.Put(stored, key, body)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for tenant, want := range map[string]string{"acme": "a a-b a.b b", "acme-2": "x", access.AnyTenant: "x", "other": ""} {
		all, err := users.OfTenant(tenant)
		var got []string
		for _, u := range all {
			got = append(got, u.Name)
		}
		if err != nil || all == nil || strings.Join(got, " ") != want {
			t.Errorf("the users of %s are %q, %v; want %q", tenant, got, err, want)
		}
	}
}
