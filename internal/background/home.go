package background

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// answersLimit bounds a question whether a server answers.
const answersLimit = 2 * time.Second

// Answers reports whether a server answers a GET with 200 within 2 s.
func Answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, answersLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// DataHome is the data directory of the user's account.
func DataHome() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "palimpsest"), nil
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "palimpsest"), err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "share", "palimpsest"), err
}
