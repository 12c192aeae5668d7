package hostkey

import (
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
)

// TestProof checks that a proof is good for one key and one host, and that whatever else
// arrives in its place is refused by name.
func TestProof(t *testing.T) {
	t.Parallel()
	pair := func() (nkeys.KeyPair, string) {
		key, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		public, err := key.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return key, public
	}
	key, public := pair()
	_, other := pair()
	proof, err := Prove(key, "h01")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		public, host, proof string
		good                bool
	}{
		"key and host":        {public, "h01", proof, true},
		"another host":        {public, "h02", proof, false},
		"the key of another":  {other, "h01", proof, false},
		"no proof":            {public, "h01", "", false},
		"not base64":          {public, "h01", "%", false},
		"cut off":             {public, "h01", proof[:20], false},
		"longer":              {public, "h01", proof + "AAAA", false},
		"no key":              {"", "h01", proof, false},
		"the key of a server": {"N" + public[1:], "h01", proof, false},
	} {
		err := Proven(c.public, c.host, c.proof)
		if (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), `host "`+c.host) {
			t.Errorf("%s does not name the host: %v", name, err)
		}
	}
}
