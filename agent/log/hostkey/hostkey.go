// Package hostkey is the key of a host: what the host proves with it, and how it asks
// its site to take another. Which keys are let in is decided by the site (package natsd);
// this package is in the program of a host, too, and knows no server.
package hostkey

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
)

// Rotation is the request of a host for another key. The host sends it on a
// connection with the key that it has, so it is the host that asks.
type Rotation struct {
	PublicKey string `json:"public-key"`
	// Proof is that of Prove, with the new key.
	Proof string `json:"proof"`
}

// Rotated is the response. Error is empty if the host is let in with the new key.
type Rotated struct {
	Error string `json:"error,omitempty"`
}

// Prove signs that a key is for a host, as only who has its seed can.
func Prove(key nkeys.KeyPair, host string) (proof string, err error) {
	public, err := key.PublicKey()
	if err != nil {
		return "", err
	}
	signature, err := key.Sign(statement(public, host))
	return base64.RawURLEncoding.EncodeToString(signature), err
}

// Proven checks what Prove has signed.
func Proven(public, host, proof string) error {
	if !Signed(public, proof, statement(public, host)) {
		return fmt.Errorf("the proof is not a signature with key %.60q for host %q", public, host)
	}
	return nil
}

func statement(public, host string) []byte {
	return fmt.Appendf(nil, "osupgrade: key %s is for host %s", public, host)
}

// Rotate asks a site to let a host in with another key. connect connects with the key
// that the host has.
func Rotate(ctx context.Context, tenant, host string, key nkeys.KeyPair, connect func(...nats.Option) (*nats.Conn, error)) error {
	public, err := key.PublicKey()
	if err != nil {
		return err
	}
	proof, err := Prove(key, host)
	if err != nil {
		return err
	}
	body, err := json.Marshal(Rotation{PublicKey: public, Proof: proof})
	if err != nil {
		return err
	}
	subjects := log.Subjects{Tenant: tenant}
	nc, err := connect(nats.CustomInboxPrefix(subjects.Inbox(host)))
	if err != nil {
		return fmt.Errorf("cannot connect to the log of the site: %w", err)
	}
	defer nc.Close()
	response, err := nc.RequestWithContext(ctx, subjects.Rotate(host), body)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return errors.New("the site does not replace keys; upgrade it, or make a key there with osupgrade-agent credentials host --replace")
	case err != nil:
		return fmt.Errorf("the site does not answer: %w", err)
	}
	var rotated Rotated
	if err := json.Unmarshal(response.Data, &rotated); err != nil {
		return fmt.Errorf("the site's answer is no JSON: %w", err)
	}
	if rotated.Error != "" {
		return fmt.Errorf("the site refuses it: %s", rotated.Error)
	}
	return nil
}

// Signed reports whether a signature of a text, base64, is that of a host's key.
func Signed(public, signature string, text []byte) bool {
	if len(text) == 0 || !nkeys.IsValidPublicUserKey(public) {
		return false
	}
	proof, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	key, err := nkeys.FromPublicKey(public)
	return err == nil && key.Verify(text, proof) == nil
}
