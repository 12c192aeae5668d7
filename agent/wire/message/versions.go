package message

import (
	"encoding/json"
	"fmt"
)

// MaxVersions bounds the packages that one host reports, and MaxVersionsBody
// the report, in bytes.
const (
	MaxVersions     = 10_000
	MaxVersionsBody = 256 << 10
)

// EncodeVersions returns the flat JSON object package → version, its
// keys in order, so that equal versions have equal bodies.
func EncodeVersions(versions map[string]string) []byte {
	if versions == nil {
		versions = map[string]string{}
	}
	return encode(versions)
}

// DecodeVersions reads a report of versions. Nested values are refused.
func DecodeVersions(data []byte) (map[string]string, error) {
	if len(data) > MaxVersionsBody {
		return nil, fmt.Errorf("cannot read versions: %d bytes; at most %d", len(data), MaxVersionsBody)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("cannot read versions: %w", err)
	}
	if raw == nil {
		return nil, fmt.Errorf("cannot read versions: the body is not an object")
	}
	if len(raw) > MaxVersions {
		return nil, fmt.Errorf("cannot read versions: %d packages; at most %d", len(raw), MaxVersions)
	}
	versions := make(map[string]string, len(raw))
	for name, value := range raw {
		var version string
		if err := json.Unmarshal(value, &version); err != nil {
			return nil, fmt.Errorf("cannot read versions: the version of %q is not a string", name)
		}
		versions[CleanText(name)] = CleanText(version)
	}
	return versions, nil
}
