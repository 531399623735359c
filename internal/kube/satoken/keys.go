// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package satoken

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// MaxKeysBytes bounds a key set. An RSA key of 4096 bits takes under 1 KiB of it.
const MaxKeysBytes = 1 << 20

// PublicKeys decodes a JSON Web Key Set that the issuer publishes. Of keys that are no public ones none is taken, and a
// set without a public one is an error.
func PublicKeys(set []byte) (jose.JSONWebKeySet, error) {
	var all, public jose.JSONWebKeySet
	if len(set) > MaxKeysBytes {
		return public, fmt.Errorf("decoding the issuer's keys: %d bytes are more than %d", len(set), MaxKeysBytes)
	}
	if err := json.Unmarshal(set, &all); err != nil {
		return public, fmt.Errorf("decoding the issuer's keys: %w", err)
	}
	for i := range all.Keys {
		if all.Keys[i].IsPublic() {
			public.Keys = append(public.Keys, all.Keys[i])
		}
	}
	if len(public.Keys) == 0 {
		return public, errors.New("the issuer's key set holds no public key")
	}
	return public, nil
}
