package principal

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
)

var (
	// ErrNoUser means that a token is not that of the login of a user.
	ErrNoUser = errors.New("the token is not that of the login of a user, and nobody else has a password; log in with osupgrade-agent login")
	// ErrWrongPassword means that a user has another password.
	ErrWrongPassword = errors.New("the current password is wrong")
)

// ChangePassword gives the user who has logged in with a token another password, if it knows
// the one of now. It withdraws and returns the tokens of its other logins; that login goes on.
// from is the source that the request comes from, as at User.
func (l *Logins) ChangePassword(ctx context.Context, from, text, current, next string, now time.Time) (User, []credential.Stored[Token], error) {
	token, err := l.tokens.Find(text, now)
	if err == nil {
		token, err = l.Current(token)
	}
	switch {
	case err != nil:
		return User{}, nil, err
	case token.Login == nil || token.Login.Of != OfUser:
		return User{}, nil, ErrNoUser
	}
	user, err := l.Users.Get(token.Tenant, token.Name)
	if err == nil {
		err = l.Users.Check(user, next, true)
	}
	if err == nil && next == current {
		err = wrong("password", "it is the one that you have; use another one")
	}
	if err != nil {
		return User{}, nil, err
	}
	right, err := l.Users.hasher.verify(ctx, from, user.Hash, current)
	switch {
	case errors.Is(err, errDamagedHash):
		return User{}, nil, ErrDamagedUser
	case err != nil:
		return User{}, nil, err
	case !right:
		return User{}, nil, ErrWrongPassword
	}
	// The condition keeps the roles that somebody may have written meanwhile, and has one of
	// two changes at once lose.
	if user, err = l.Users.Write(ctx, user, next, credential.IfRevision(user.Revision), now); err != nil {
		return User{}, nil, err
	}
	withdrawn, err := l.endOthers(ID(text), user)
	return user, withdrawn, err
}

// endOthers has the login of a token go on with the password that its user has now, and
// withdraws the others. When the process ends before it does, that login has ended, too.
func (l *Logins) endOthers(id string, user User) (others []credential.Stored[Token], err error) {
	err = credential.Update(l.tokens.stored, id, func(body []byte) ([]byte, error) {
		token, err := decodeToken(id, body)
		if err != nil {
			return nil, err
		}
		token.Login.Proof = user.proof()
		return encodeToken(id, token)
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) { // It may have been withdrawn meanwhile.
		return nil, err
	}
	ended, err := l.withdraw()
	for _, t := range ended {
		if t.Value.Login.Of == OfUser && t.Value.Tenant == user.Tenant && t.Value.Name == user.Name {
			others = append(others, t)
		}
	}
	return others, err
}
