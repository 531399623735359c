// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// keyBytes is the size of a key: AES-256.
const keyBytes = 32

// Keys seal what browsers keep. The first seals, and all open, so that keys can be replaced.
type Keys []cipher.AEAD

// ParseKeys reads keys in base64, one in a line.
func ParseKeys(text string) (Keys, error) {
	var keys Keys
	for line := range strings.FieldsSeq(text) {
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != keyBytes {
			return nil, fmt.Errorf("key %d is not %d bytes in base64: \"openssl rand -base64 %[2]d\" makes one",
				len(keys)+1, keyBytes)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", len(keys)+1, err)
		}
		sealer, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", len(keys)+1, err)
		}
		keys = append(keys, sealer)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key in it")
	}
	return keys, nil
}

// seal encrypts a value for one purpose, as text for a cookie.
func (k Keys) seal(purpose string, value any) string {
	plain, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encoding a %s: %v", purpose, err)) // Cannot happen: it consists of texts and a time.
	}
	return base64.RawURLEncoding.EncodeToString(k[0].Seal(nil, nil, plain, []byte(purpose)))
}

// open reports whether the text is what seal made for the purpose, and decodes it.
func (k Keys) open(purpose, text string, into any) bool {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	for _, key := range k {
		if plain, err := key.Open(nil, nil, sealed, []byte(purpose)); err == nil {
			return json.Unmarshal(plain, into) == nil
		}
	}
	return false
}
