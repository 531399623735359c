// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

const redacted = "[redacted]"

var (
	// secretLike is what API keys and tokens look like: a long run of characters that no word has.
	secretLike = regexp.MustCompile(
		`(?i)(bearer\s+\S+|\b(sk|pk|key|xai|gsk|AIza|ghp|hf)[-_]?[A-Za-z0-9_*.-]{6,}|\beyJ[\w.-]{8,}|[A-Za-z0-9_+/=*-]{28,})`)
	// addressSecret is where a URL holds secrets: before its host, and behind its path.
	addressSecret = regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://)[^/?#\s@]*@|[?#][^\s"'<>]*=[^\s"'<>]*`)
	// markup is what pages begin with or consist of. A page is a proxy's or a gateway's, and not an error message.
	markup = regexp.MustCompile(`(?i)^\s*<|<(!doctype|html|head|body|title|div|center|script|pre|h1|p|br)\b`)
)

// quotable is the part of a provider's message that can be shown: nothing if it is a page or quotes the prompt, else
// its beginning on one line, without secrets.
func quotable(message string, about Subject) string {
	if markup.MatchString(message) {
		return ""
	}
	// The rest is not shown either way; a quotation at the cut is long enough to be noticed.
	message = clip.Runes(strings.ToValidUTF8(message, ""), 2*maxQuoted)
	if quotes(message, about.Private) {
		return ""
	}
	return scrub(printable.Line(message), about)
}

// scrub replaces what is, or looks like, a secret.
func scrub(text string, about Subject) string {
	for _, secret := range secretsOf(about) {
		text = withoutPieces(text, secret)
	}
	text = addressSecret.ReplaceAllString(text, "${1}"+redacted)
	return secretLike.ReplaceAllString(text, redacted)
}

// secretsOf are the secrets that a call carries: the key, the values of headers, and what baseURL holds besides a
// place.
func secretsOf(about Subject) []string {
	secrets := []string{about.Key}
	for _, h := range about.Spec.Headers {
		secrets = append(secrets, h.Value)
	}
	return append(secrets, urlSecrets(about.Spec)...)
}

func urlSecrets(spec *v1beta1.ChatModelConfigSpec) []string {
	u, err := url.Parse(spec.BaseURL)
	if err != nil {
		return []string{spec.BaseURL}
	}
	var secrets []string
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, password)
	}
	secrets = append(secrets, u.User.Username())
	for _, values := range u.Query() {
		secrets = append(secrets, values...)
	}
	return secrets
}

const (
	// pieceLength is the length from which a piece of a secret is one too: shorter ones are chance.
	pieceLength = 8
	// secretLength is the length from which anything is a secret: shorter ones are in any text.
	secretLength = 6
)

// withoutPieces replaces a secret and every piece of it that is long enough. A shorter secret counts as a whole.
func withoutPieces(text, secret string) string {
	length := min(pieceLength, len(secret))
	if length < secretLength {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		n := commonPrefix(text[i:], secret, length)
		if n == 0 {
			b.WriteByte(text[i])
			i++
			continue
		}
		b.WriteString(redacted)
		i += n
	}
	return b.String()
}

// commonPrefix is how many bytes at the beginning of text are a piece of the secret; 0 if fewer than length.
func commonPrefix(text, secret string, length int) int {
	n := length
	if n > len(text) || !strings.Contains(secret, text[:n]) {
		return 0
	}
	for n < len(text) && strings.Contains(secret, text[:n+1]) {
		n++
	}
	return n
}

// quoteLength is the length from which a run of the same letters and digits, in bytes, counts as a quotation: hardly
// any two texts have so many in common by chance, and if they do, no more is lost than the provider's own words.
const quoteLength = 18

// quotes reports whether a provider's error message repeats part of the prompt, however it is spaced, escaped or
// written in capitals. Such a message is not shown: people who may not read the conversation
// can read conditions and events.
func quotes(message string, private []string) bool {
	message = folded(unescaped.Replace(message))
	runs := map[string]bool{} // A prompt can be large: it is read once.
	for i := 0; i+quoteLength <= len(message); i++ {
		runs[message[i:i+quoteLength]] = true
	}
	for _, text := range private {
		text = folded(text)
		if len(text) > 3 && strings.Contains(message, text) {
			return true
		}
		for i := 0; i+quoteLength <= len(text); i++ {
			if runs[text[i:i+quoteLength]] {
				return true
			}
		}
	}
	return false
}

// unescaped takes away JSON's escapes for white space: their letters would cut a quotation into short runs.
var unescaped = strings.NewReplacer(`\n`, " ", `\r`, " ", `\t`, " ")

// folded are the letters and digits of a text, in small letters.
func folded(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
