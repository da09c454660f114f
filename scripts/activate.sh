# Activates the environment that the scripts installed for this machine, .venv-gpu or .venv-cpu, or the one VENV names:
#
#   source scripts/activate.sh
#
# In bash and zsh. `deactivate` leaves it again.

_swift_rlvr_scripts=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")" && pwd)
_swift_rlvr_venv=$(VENV=${VENV:-} bash -c 'source "$0/common.sh" && echo "$VENV"' "$_swift_rlvr_scripts")
if ls "$_swift_rlvr_venv"/.installed-* >/dev/null 2>&1; then
  . "$_swift_rlvr_venv/bin/activate"
else
  echo "error: nothing is installed in $_swift_rlvr_venv: bash $_swift_rlvr_scripts/install.sh" >&2
  false
fi
