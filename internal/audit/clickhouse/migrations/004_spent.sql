-- What models charged for an effect, by model.
ALTER TABLE effects{everywhere}
    ADD COLUMN IF NOT EXISTS spent_model Array(String),
    ADD COLUMN IF NOT EXISTS spent_calls Array(UInt64),
    ADD COLUMN IF NOT EXISTS spent_input Array(UInt64),
    ADD COLUMN IF NOT EXISTS spent_output Array(UInt64),
    ADD COLUMN IF NOT EXISTS spent_dollars Array(Float64);
